import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Figure, tableOf } from '../section';
import type { GpuSection } from './gpu-section';

/** A section's part of the page. */
export class Part {
  readonly startedAt = Date.now();
  private readonly told: (Figure | string)[] = [];
  private end = '**Ended**: the bench was stopped';

  constructor(
    private readonly section: GpuSection,
    private readonly hasGoals: boolean,
  ) {}

  readonly tell = (told: Figure | string): void => void this.told.push(told);

  endsWith(end: string): void {
    this.end = end;
  }

  get figures(): Figure[] {
    const figures = this.told.filter((each) => typeof each !== 'string');
    return this.hasGoals ? figures : figures.map(({ goal: _goal, ...figure }) => figure);
  }

  /** Of figures that have a goal, with the section's title. */
  get goals(): Figure[] {
    return this.figures.flatMap(({ name, ...figure }) =>
      figure.goal ? [{ ...figure, name: `${this.section.title}: ${name}` }] : [],
    );
  }

  get text(): string {
    const { figures } = this;
    return [
      `## ${this.section.title}\n\n${this.section.about}\n`,
      ...(figures.length > 0 ? [...tableOf(figures), ''] : []),
      ...this.told.flatMap((each) => (typeof each === 'string' ? [`- ${each}`] : [])),
      `\n${this.end}\n`,
    ].join('\n');
  }
}

/** What `npm run bench -- --gpu` writes about a device. */
export class Page {
  private readonly startedAt = Date.now();
  private readonly parts: Part[] = [];

  constructor(
    private readonly device: string,
    private readonly options: { dry: boolean; out: string },
  ) {}

  begin(section: GpuSection): Part {
    const part = new Part(section, !this.options.dry);
    this.parts.push(part);
    return part;
  }

  /** The page so far: what was measured stays if this process is ended. A dry run writes none. */
  write(): void {
    if (this.options.dry) return;
    const slug = this.device.toLowerCase().replace(/[^a-z0-9]+/g, '-');
    mkdirSync(this.options.out, { recursive: true });
    writeFileSync(join(this.options.out, `gpu-${slug}.md`), this.text);
  }

  get text(): string {
    const goals = this.parts.flatMap((part) => part.goals);
    const seconds = Math.round((Date.now() - this.startedAt) / 1000);
    return [
      `# ${this.device}

Written by \`npm run bench -- --gpu\`. Models have the sizes of Stable Diffusion 1.5 and XL, FLUX.2 [klein] 4B and Z-Image, and random weights. Each section is a process of its own; a ratio is the median of its rounds, with the smallest and the largest in brackets. That of a row among others to a row alone is one of two medians.
`,
      ...(goals.length > 0 ? ['## Goals\n', ...tableOf(goals), ''] : []),
      ...this.parts.map(({ text }) => text),
      `Measured on ${new Date().toISOString().slice(0, 10)}, in ${seconds} s.\n`,
    ].join('\n');
  }
}
