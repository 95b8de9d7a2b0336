import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Machine } from './machine';
import { thisMachine } from './machine';
import type { Figure, Section, SectionResult } from './section';
import { isReached } from './section';
import { svgOf } from './svg';

const jsonName = 'results.json';

/** The content of `results.json`. */
interface Results {
  machine: Machine & { threads: number; model: string };
  /** By name. */
  sections: Record<string, SectionResult & Measurement & Pick<Section, 'title' | 'about'>>;
}

/** How a section was measured. */
export interface Measurement {
  /** The day. */
  measuredOn: string;
  /** The share of the processors' time, 0 to 1, that other programs took just before. */
  othersBusy: number;
}

/**
 * A page of results in a folder: JSON, Markdown and plots. Sections that are not measured anew stay, unless
 * the machine is another.
 */
export class Page {
  private readonly results: Results;

  constructor(
    private readonly folder: string,
    /** All there are, in their order. */
    private readonly sections: readonly Section[],
    { threads, model }: { threads: number; model: string },
  ) {
    const machine = { ...thisMachine(), threads, model };
    const file = join(folder, jsonName);
    const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Results) : undefined;
    const isSame = JSON.stringify(before?.machine) === JSON.stringify(machine);
    this.results = { machine, sections: isSame ? before!.sections : {} };
  }

  add({ name, title, about }: Section, result: SectionResult, measurement: Measurement): void {
    const rounded = result.figures.map(({ ratio, range, ...rest }) => ({
      ...rest,
      ratio: significant(ratio),
      range: range.map(significant) as Figure['range'],
    }));
    this.results.sections[name] = { title, about, ...measurement, ...result, figures: rounded };
    this.write();
  }

  private write(): void {
    mkdirSync(this.folder, { recursive: true });
    const sections = this.sections.filter(({ name }) => name in this.results.sections);
    this.results.sections = Object.fromEntries(sections.map(({ name }) => [name, this.results.sections[name]]));
    const rounded = (_: string, value: unknown): unknown => (typeof value === 'number' ? significant(value) : value);
    writeFileSync(join(this.folder, jsonName), `${JSON.stringify(this.results, rounded, 2)}\n`);
    writeFileSync(join(this.folder, 'README.md'), this.markdown());
    for (const { plots } of Object.values(this.results.sections))
      for (const plot of plots ?? []) writeFileSync(join(this.folder, plot.file), svgOf(plot));
  }

  private markdown(): string {
    const { machine, sections } = this.results;
    const { processor, cores, platform, node, onnxruntime, threads, model } = machine;
    const head = [
      '# Results',
      '',
      'Written by `npm run bench`. Each figure is a ratio of two things that were measured in turns in one run: the median of its rounds, with the smallest and the largest in brackets.',
      '',
      `${processor}, ${cores} cores, ${platform}, Node ${node}, onnxruntime-node ${onnxruntime}; model \`${model}\`, ${threads} threads a call.`,
    ];
    const body = Object.values(sections).flatMap((section) => [
      ...['', `## ${section.title}`, '', `${section.about}`, '', ...table(section.figures)],
      ...(section.plots ?? []).flatMap((plot) => ['', `![${plot.title}](${plot.file})`]),
      ...[
        '',
        `Measured on ${section.measuredOn}; other programs took ${percent(section.othersBusy)} of the processors just before.`,
      ],
    ]);
    return `${[...head, ...body].join('\n')}\n`;
  }
}

/** Aligned as Prettier aligns it. */
function table(figures: readonly Figure[]): string[] {
  const rows = [['', 'ratio', 'rounds', 'goal', ''], ...figures.map(cellsOf)];
  const widths = rows[0].map((_, column) => Math.max(3, ...rows.map((row) => row[column].length)));
  const lineOf = (cells: readonly string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  return [lineOf(rows[0]), lineOf(widths.map((width) => '-'.repeat(width))), ...rows.slice(1).map(lineOf)];
}

/** @returns name, ratio with range, rounds, goal, and whether it is reached */
export function cellsOf(figure: Figure): string[] {
  const { name, ratio, range, rounds, goal } = figure;
  const wanted = goal?.atMost === undefined ? `≥ ${goal?.atLeast}` : `≤ ${goal.atMost}`;
  const reached = isReached(figure);
  return [
    name,
    `${shown(ratio)} (${range.map(shown).join(' to ')})`,
    String(rounds),
    goal ? wanted : '',
    reached === undefined ? '' : reached ? 'reached' : '**missed**',
  ];
}

function shown(value: number): string {
  return value < 10 ? value.toFixed(3) : value.toFixed(1);
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

function significant(value: number): number {
  return Number(value.toPrecision(4));
}
