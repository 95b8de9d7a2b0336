import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import type { Device } from '@app/diffusion';
import { type Figure, tableOf } from '../section';
import type { GpuSection } from './gpu-section';
import type { SectionTask, Told } from './section-process';
import { sections } from './sections';

const usage = `npm run bench -- --gpu [options]: measures a GPU and writes a page about it.

  --minutes <n>      in all; the last sections are left out where that is too short    8
  --dry              on the processor with tiny models: tries the script, and writes no page
  --only <names>     sections, separated by commas    ${sections.map(({ name }) => name).join(',')}
  --device <name>    as in DEVICE                                                      cuda:0
  --python <path>    of an interpreter with torch and diffusers, to compare with; CUDA’s libraries are its own
  --weights <folder>  where 1.3 GB of random values are written                         a temporary folder
  --out <folder>     that gets the page                                                bench/results`;

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '8' },
    dry: { type: 'boolean', default: false },
    only: { type: 'string' },
    device: { type: 'string' },
    python: { type: 'string' },
    weights: { type: 'string' },
    out: { type: 'string', default: 'bench/results' },
    help: { type: 'boolean', default: false },
  },
});

/** Seconds that a section needs at least. */
const fewestSeconds = 8;
const device = (options.device ?? (options.dry ? 'cpu' : 'cuda:0')) as Device;
let current: ChildProcess | undefined;

async function main(): Promise<void> {
  if (options.help) return console.log(usage);
  const names = options.only?.split(',');
  const unknown = names?.filter((name) => !sections.some((section) => section.name === name));
  if (unknown?.length) throw new Error(`There is no section ${unknown.join(', ')}.\n\n${usage}`);
  const startedAt = Date.now();
  const until = startedAt + 60_000 * Number(options.minutes);
  const weights = options.weights ?? mkdtempSync(join(tmpdir(), 'darkroom-bench-'));
  mkdirSync(weights, { recursive: true });
  const { python } = options;
  const task: SectionTask = {
    device,
    size: options.dry ? 'tiny' : 'full',
    weights,
    until,
    ...(python !== undefined && { python }),
  };
  const values = run(task, { env: {} });
  const page = [headOf(deviceName())];
  for (const section of sections.filter(({ name }) => names?.includes(name) ?? true)) {
    if (!/^(?:environment|goldens)$/.test(section.name)) {
      const { problem } = await values;
      if (problem !== undefined) throw new Error(`The values could not be written: ${problem}`);
    }
    const text = await measured(section, task, until);
    console.log(text);
    page.push(text);
    write(page);
  }
  page.push(
    `Measured on ${new Date().toISOString().slice(0, 10)}, in ${Math.round((Date.now() - startedAt) / 1000)} s.\n`,
  );
  write(page);
  if (!options.weights) rmSync(weights, { recursive: true });
}

const headOf = (name: string): string => `# ${name}

Written by \`npm run bench -- --gpu\`. Models have the sizes of Stable Diffusion 1.5 and XL, FLUX.2 [klein] 4B and Z-Image, and random weights. Each section is a process of its own; a ratio is the median of its rounds, with the smallest and the largest in brackets.
`;

function deviceName(): string {
  if (device === 'cpu') return cpus()[0].model.trim();
  try {
    const asked = ['--query-gpu=name', '--format=csv,noheader', `--id=${device.replace('cuda:', '')}`];
    return execFileSync('nvidia-smi', asked).toString().trim();
  } catch {
    return device;
  }
}

/** The page so far: what was measured stays if this process is ended. */
function write(page: readonly string[]): void {
  if (options.dry) return;
  mkdirSync(options.out, { recursive: true });
  const slug = deviceName()
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-');
  writeFileSync(join(options.out, `gpu-${slug}.md`), page.join('\n'));
}

/** A section's text, with what it told before it was ended, and why it was. */
async function measured(section: GpuSection, task: SectionTask, until: number): Promise<string> {
  const head = `## ${section.title}\n\n${section.about}\n`;
  const left = (until - Date.now()) / 1000;
  if (left < fewestSeconds) return `${head}\nLeft out: no time was left.\n`;
  const startedAt = Date.now();
  const seconds = Math.min(section.seconds, left);
  const { told, problem } = await run({ ...task, section: section.name, until: startedAt + 1000 * seconds }, section);
  const figures = told.filter((each): each is Figure => typeof each !== 'string');
  const lines = told.filter((each) => typeof each === 'string');
  const took = `${((Date.now() - startedAt) / 1000).toFixed(0)} s`;
  return [
    head,
    ...(figures.length > 0 ? [...tableOf(figures), ''] : []),
    ...lines.map((line) => `- ${line}`),
    problem === undefined ? `\nIt took ${took}.\n` : `\n**Ended after ${took}: ${problem}.**\n`,
  ].join('\n');
}

/** Runs a section in a process group, all of which is ended with it. */
async function run(
  task: SectionTask,
  { env }: Pick<GpuSection, 'env'>,
): Promise<{ told: (Figure | string)[]; problem?: string }> {
  const libraries = [cudaLibraries(), process.env.LD_LIBRARY_PATH].filter(Boolean).join(':');
  const child = fork(join(__dirname, 'section-process.js'), [JSON.stringify(task)], {
    ...{ detached: true, stdio: ['ignore', 'inherit', 'pipe', 'ipc'] },
    env: { ...process.env, ...(libraries && { LD_LIBRARY_PATH: libraries }), ...env },
  });
  if (task.section !== undefined) current = child;
  const told: (Figure | string)[] = [];
  let problem: string | undefined;
  let lastLine = '';
  child.on('message', (message: Told) => {
    if ('told' in message) told.push(message.told);
    else problem = message.error;
  });
  createInterface({ input: child.stderr! }).on('line', (line) => (lastLine = line.trim() || lastLine));
  const timer = setTimeout(() => {
    problem = 'its time was over';
    end(child);
  }, task.until - Date.now());
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  clearTimeout(timer);
  end(child);
  if (code !== 0) problem ??= `its process ended with ${code ?? signal}${lastLine && `: ${lastLine.slice(0, 300)}`}`;
  return { told, ...(problem !== undefined && { problem }) };
}

function end({ pid }: ChildProcess): void {
  try {
    process.kill(-pid!, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

let found: string | undefined;

/** Folders of the CUDA that PyTorch's packages have. */
function cudaLibraries(): string {
  if (found !== undefined || options.python === undefined || device === 'cpu') return found ?? '';
  const code =
    'import glob, importlib.util, os; packages = os.path.dirname(os.path.dirname(importlib.util.find_spec("torch").origin)); print(":".join(glob.glob(packages + "/nvidia/*/lib")))';
  try {
    found = execFileSync(options.python, ['-c', code]).toString().trim();
  } catch {
    found = '';
  }
  return found;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    if (current) end(current);
    process.exit(1);
  });

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
