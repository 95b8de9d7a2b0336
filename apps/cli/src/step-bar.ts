import type { ProgressOutput } from './progress-line';

const width = 30;

/** Without a terminal, a line for each so many of the steps. */
const plainParts = 5;

/** The steps of a drawing: one line that is drawn over on a terminal, some lines elsewhere. */
export class StepBar {
  private done = 0;
  private plainPart = 0;

  constructor(private readonly output: ProgressOutput) {}

  /** Shows what happens before the first step. */
  say(text: string): void {
    this.output.write(this.output.isTTY ? `\r\u001b[K${text}` : `${text}\n`);
  }

  /** Shows that `step` of `total` steps are done. Steps never go back, whatever order they are heard in. */
  show(step: number, total: number): void {
    if (step <= this.done) return;
    this.done = step;
    const part = Math.floor((step / total) * plainParts);
    if (!this.output.isTTY && part <= this.plainPart) return;
    this.plainPart = part;
    const full = Math.round((step / total) * width);
    this.say(`${'█'.repeat(full)}${'░'.repeat(width - full)} step ${step} of ${total}`);
  }

  /** Leaves the line as it is, so that what is printed next stands below. */
  end(): void {
    if (this.output.isTTY) this.output.write('\n');
  }
}
