import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { program } from 'commander';
import { Bench, type Report } from './bench';
import type { Figures } from './row';
import { rows } from './rows';

const groups = [...new Set(rows.flatMap(({ group }) => group ?? []))];
const names = [...groups, ...rows.map(({ name }) => name)];

const columns: [keyof Figures, string][] = [
  ['acknowledged', 'acknowledged'],
  ['terminated', 'terminated'],
  ['duplicates', 'duplicates'],
  ['lost', 'lost'],
  ['leaked', 'leaked'],
  ['serverErrors', '5xx'],
];

const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function main(chosen: string[], options: { short?: boolean; parallel: string; report: string }): Promise<void> {
  const unknown = chosen.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`Unknown: ${unknown.join(', ')}. There are ${names.join(', ')}.`);
  const isChosen = (name: string | undefined): boolean => name !== undefined && chosen.includes(name);
  const size = options.short ? 'short' : 'long';
  const bench = await Bench.start(size);
  const reports: Report[] = [];
  try {
    say(['fault'.padEnd(46), ...columns.map(([, title]) => title.padStart(12)), '  result'].join(''));
    const running = rows.filter(({ name, group }) => chosen.length === 0 || isChosen(name) || isChosen(group));
    for (const report of bench.run(running, Number(options.parallel))) {
      reports.push(await report);
      print(reports.at(-1)!);
    }
  } finally {
    await bench.close();
  }
  const file = resolve(options.report);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify({ at: new Date().toISOString(), size, rows: reports }, null, 2)}\n`);
  const broken = reports.filter(({ problems }) => problems.length > 0);
  say(`${reports.length - broken.length} of ${reports.length} faults are borne. The report is in ${file}.`);
  process.exit(broken.length > 0 ? 1 : 0);
}

function print({ title, figures, problems, notes, skipped, seconds }: Report): void {
  const result = problems.length > 0 ? 'BROKEN' : skipped && figures.acknowledged === 0 ? 'skipped' : 'ok';
  const cells = columns.map(([name]) => String(figures[name]).padStart(12));
  say(`${title.padEnd(46)}${cells.join('')}  ${result} after ${Math.round(seconds)} s`);
  const words = Object.entries(notes).map(([name, value]) => `${name} ${value}`);
  if (words.length > 0) say(`  ${words.join(', ')}`);
  if (skipped) say(`  not tried: ${skipped}`);
  for (const problem of problems) say(`  ${problem}`);
}

program
  .name('npm run torture --')
  .description('Does its worst to the service, and says what came of it.')
  .argument('[names...]', 'rows, or groups of rows; without names all of them')
  .option('--short', 'a few seconds for each row, as in the tests, where times are not judged')
  .option('--parallel <number>', 'rows at once', '1')
  .option('--report <file>', 'where the report goes', '.cache/torture.json')
  .addHelpText('after', `\nRows and groups: ${names.join(', ')}`)
  .action(main)
  .parseAsync()
  .catch((error: Error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  });
