import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { env } from '../libs/diffusion/src/sessions/onnx-runtime';
import { type BenchOptions, type Section, tableOf } from './section';
import { engine, rows } from './sections/engine';
import { makeFullSizeModel } from './full-size-model';
import { fullSize } from './sections/full-size';
import { intake } from './sections/intake';
import { pipeline } from './sections/pipeline';
import { poisson } from './sections/poisson';
import { short } from './sections/short';
import { signing } from './sections/signing';
import { start } from './sections/start';
import { today } from './sections/today';

const sections = [fullSize, rows, engine, poisson, short, signing, start, pipeline, intake, today];

const usage = `npm run bench -- [options]: measures ratios, and prints tables of them.

  --only <names>      sections, separated by commas     ${sections.map(({ name }) => name).join(',')}
  --rounds <n>        rounds that count                 each section has its own number
  --model <folder>    of the model                      models/shapes
  --full-size <folder>  of a model at full size, made if it is not there; without it that section is left out,
                        as today is unless --only names it, which also makes two folders of 14 and 9 GB beside it
  --device <name>     as in DEVICE                      cpu
  --threads <n>       of one call                       as many as there are cores
  --python <path>     of an interpreter with torch, diffusers and transformers
  --out <folder>      whose README.md gets the tables, beside those of other sections of this machine
  --gpu               measures a GPU instead; with --help it tells its own options`;

/** What is told of `--gpu` is for another program. */
const isForGpu = process.argv.includes('--gpu');

const { values: options } = parseArgs({
  args: isForGpu ? [] : process.argv.slice(2),
  options: {
    only: { type: 'string' },
    rounds: { type: 'string' },
    model: { type: 'string', default: 'models/shapes' },
    'full-size': { type: 'string' },
    device: { type: 'string', default: 'cpu' },
    threads: { type: 'string', default: String(availableParallelism()) },
    python: { type: 'string' },
    out: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

async function main(): Promise<void> {
  if (options.help) return console.log(usage);
  const names = options.only?.split(',');
  const unknown = names?.filter((name) => !sections.some((section) => section.name === name));
  if (unknown?.length) throw new Error(`There is no section ${unknown.join(', ')}.\n\n${usage}`);
  const { model, python } = options;
  const folder = options['full-size'] ?? (names?.includes(today.name) ? '.cache/full-size' : undefined);
  if (!folder) console.log('No --full-size: that section is left out.\n');
  else if (!existsSync(folder)) await makeFullSizeModel(folder, model);
  const [threads, rounds] = [options.threads, options.rounds].map(Number);
  const device = options.device as BenchOptions['device'];
  const busy = Math.round((100 * loadavg()[0]) / availableParallelism());
  for (const section of sections.filter(
    (each) => (names?.includes(each.name) ?? each !== today) && (folder || each !== fullSize),
  )) {
    const measuredOn = new Date().toISOString().slice(0, 10);
    const given = {
      model,
      device,
      threads,
      ...(python && { python }),
      ...(folder && { fullSize: folder }),
      rounds: rounds || section.rounds,
    };
    const text = [
      `## ${section.title}\n\n${section.about}\n`,
      ...tableOf(await section.measure(given)),
      `\nMeasured on ${measuredOn}; other programs took ${busy} % of the processors in the minute before.\n`,
    ].join('\n');
    console.log(text);
    if (options.out) write(options.out, section, text);
  }
}

/** Replaces a section of the page. The others stay, unless they are of another machine. */
function write(folder: string, { title }: Section, text: string): void {
  const head = `# Results

Written by \`npm run bench\`. Each figure is a ratio of two things that were measured in turns in one run: the median of its rounds, with the smallest and the largest in brackets.

${cpus()[0].model.trim()}, ${availableParallelism()} cores, ${process.platform} ${process.arch}, Node ${process.versions.node}, onnxruntime-node ${env.versions.node ?? env.versions.common}; model \`${basename(options.model)}\` on ${options.device}, ${options.threads} threads a call.
`;
  const file = join(folder, 'README.md');
  const [oldHead, ...old] = existsSync(file) ? readFileSync(file, 'utf8').split(/\n(?=## )/) : [];
  const kept = oldHead === head ? old : [];
  const texts = sections.map((each) =>
    each.title === title ? text : kept.find((part) => part.startsWith(`## ${each.title}\n`)),
  );
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, [head, ...texts.filter((part) => part !== undefined)].join('\n'));
}

async function measureGpu(): Promise<void> {
  const given = process.argv.slice(2).filter((arg) => arg !== '--gpu');
  const child = spawn(process.execPath, [join(__dirname, 'gpu', 'main.js'), ...given], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, 'exit')) as [number | null];
  process.exitCode = code ?? 1;
}

(isForGpu ? measureGpu() : main()).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  // The thread of an engine would keep the process alive.
  process.exit(1);
});
