import type { ProgressOutput } from './progress-line';

const width = 30;

/** Without a terminal, a line for each of this many parts. */
const plainParts = 5;

/** The steps of a drawing: one redrawn line on a terminal, a few lines elsewhere. */
export class StepBar {
  private done = 0;
  private plainPart = 0;

  constructor(private readonly output: ProgressOutput) {}

  /** Shows a message before the first step. */
  say(text: string): void {
    this.output.write(this.output.isTTY ? `\r\u001b[K${text}` : `${text}\n`);
  }

  /** Shows that `step` of `total` steps are done. It never goes back, even if steps arrive out of order. */
  show(step: number, total: number): void {
    if (step <= this.done) return;
    this.done = step;
    const part = Math.floor((step / total) * plainParts);
    if (!this.output.isTTY && part <= this.plainPart) return;
    this.plainPart = part;
    const full = Math.round((step / total) * width);
    this.say(`${'█'.repeat(full)}${'░'.repeat(width - full)} step ${step} of ${total}`);
  }

  /** Keeps the line, so that the next output is printed below it. */
  end(): void {
    if (this.output.isTTY) this.output.write('\n');
  }
}
