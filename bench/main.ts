import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { busyShare } from './machine';
import { cellsOf, Page } from './page';
import { cancel } from './sections/cancel';
import { engine } from './sections/engine';
import { intake } from './sections/intake';
import { memory } from './sections/memory';
import { pickUp } from './sections/pick-up';
import { pipeline } from './sections/pipeline';
import { poisson } from './sections/poisson';
import { rows } from './sections/rows';
import { short } from './sections/short';
import { spinning } from './sections/spinning';
import { start } from './sections/start';

const sections = [rows, engine, poisson, short, cancel, start, memory, pipeline, intake, pickUp, spinning];

const usage = `npm run bench -- [options]: measures ratios, and writes a page of them.

  --only <names>      sections, separated by commas     ${sections.map(({ name }) => name).join(',')}
  --rounds <n>        rounds that count                 each section has its own number
  --model <folder>    of the model                      models/shapes
  --threads <n>       of one call                       as many as there are cores
  --python <path>     of an interpreter with onnxruntime, torch and diffusers
  --out <folder>      for the page                      bench/results`;

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string' },
    model: { type: 'string', default: 'models/shapes' },
    threads: { type: 'string', default: String(availableParallelism()) },
    python: { type: 'string' },
    out: { type: 'string', default: 'bench/results' },
    help: { type: 'boolean', default: false },
  },
});

async function main(): Promise<void> {
  if (options.help) return console.log(usage);
  const names = options.only?.split(',');
  const unknown = names?.filter((name) => !sections.some((section) => section.name === name));
  if (unknown?.length) throw new Error(`There is no section ${unknown.join(', ')}.\n\n${usage}`);
  const { model, python } = options;
  const [threads, rounds] = [options.threads, options.rounds].map(Number);
  const page = new Page(options.out, sections, { threads, model: model.split('/').at(-1)! });
  for (const section of sections.filter(({ name }) => names?.includes(name) ?? true)) {
    console.log(`\n${section.title}`);
    const given = { model, threads, ...(python && { python }), rounds: rounds || section.rounds };
    const [othersBusy, measuredOn] = [await busyShare(), new Date().toISOString().slice(0, 10)];
    const result = await section.measure(given);
    page.add(section, result, { othersBusy, measuredOn });
    for (const figure of result.figures) console.log(`  ${cellsOf(figure).join('  ')}`);
  }
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  // The thread of an engine would keep the process alive.
  process.exit(1);
});
