import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Bench } from './bench';
import type { Figures } from './row';
import { rows } from './rows';
import type { Report } from './run';
import { startRows } from './run';

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    short: { type: 'boolean', default: false },
    report: { type: 'string', default: '.cache/torture.json' },
    parallel: { type: 'string', default: '1' },
  },
});

const columns: [keyof Figures, string][] = [
  ['acknowledged', 'acknowledged'],
  ['terminated', 'terminated'],
  ['duplicates', 'duplicates'],
  ['lost', 'lost'],
  ['leaked', 'leaked'],
  ['serverErrors', '5xx'],
];

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/**
 * `npm run torture -- [--short] [--parallel n] [--report file] [row or group …]`: does its worst to the service, and
 * says what came of it.
 */
async function main(): Promise<void> {
  const groups = [...new Set(rows.flatMap(({ group }) => group ?? []))];
  const unknown = names.filter((name) => !groups.includes(name) && !rows.some((row) => row.name === name));
  if (unknown.length > 0)
    throw new Error(
      `Unknown: ${unknown.join(', ')}. There are ${[...groups, ...rows.map(({ name }) => name)].join(', ')}.`,
    );
  const chosen = rows.filter(
    ({ name, group }) => names.length === 0 || names.includes(name) || (group && names.includes(group)),
  );
  const size = options.short ? 'short' : 'long';
  const bench = await Bench.start(size);
  const reports: Report[] = [];
  try {
    say(['fault'.padEnd(46), ...columns.map(([, title]) => title.padStart(12)), '  result'].join(''));
    for (const running of startRows(bench, chosen, size, Number(options.parallel))) {
      const report = await running;
      reports.push(report);
      print(report);
    }
  } finally {
    await bench.close();
  }
  const file = resolve(options.report);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify({ at: new Date().toISOString(), size, rows: reports }, null, 2)}\n`);
  const broken = reports.filter(({ problems }) => problems.length > 0);
  say(`${reports.length - broken.length} of ${reports.length} faults are borne. The report is in ${file}.`);
  process.exitCode = broken.length > 0 ? 1 : 0;
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

main().then(
  () => process.exit(),
  (error: Error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  },
);
