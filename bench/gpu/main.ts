import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Device } from '@app/diffusion';
import { endAll, printed, run } from './child';
import type { GpuSection } from './gpu-section';
import { Page, type Part } from './page';
import type { SectionTask } from './section-process';
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
let page: Page | undefined;
let temporary: string | undefined;

async function main(): Promise<void> {
  if (options.help) return console.log(usage);
  const names = options.only?.split(',');
  const unknown = names?.filter((name) => !sections.some((section) => section.name === name));
  if (unknown?.length) throw new Error(`There is no section ${unknown.join(', ')}.\n\n${usage}`);
  const minutes = Number(options.minutes);
  if (!(minutes > 0 && minutes <= 1440))
    throw new Error(`--minutes ${options.minutes} is no time. Give a number above 0, such as 8.`);
  const until = Date.now() + 60_000 * minutes;
  const weights = options.weights ?? (temporary = mkdtempSync(join(tmpdir(), 'darkroom-bench-')));
  mkdirSync(weights, { recursive: true });
  const { python } = options;
  const size = options.dry ? 'tiny' : 'full';
  const task: SectionTask = { device, size, weights, until, ...(python !== undefined && { python }) };
  page = new Page(deviceName(), options);
  const chosen = sections.filter(({ name }) => names?.includes(name) ?? true);
  const libraries = [cudaLibraries(), process.env.LD_LIBRARY_PATH].filter(Boolean).join(':');
  // Written beside the sections that do without them.
  const values = chosen.every(({ needsNoModels }) => needsNoModels)
    ? undefined
    : run(task, { libraries, tell: () => undefined });
  for (const section of chosen) {
    const part = page.begin(section);
    const unwritten = section.needsNoModels ? undefined : await values;
    if (unwritten !== undefined) part.endsWith(`Left out: the values of the models could not be written: ${unwritten}`);
    const problem = unwritten ?? (await measured(section, part, { task, libraries }));
    console.log(part.text);
    page.write();
    if (problem !== undefined && section.isRequired)
      throw new Error(`Nothing else was measured, as ${device} cannot be used.`);
  }
}

/** What a section told before it was ended stays, and why it was; which is returned. */
async function measured(
  section: GpuSection,
  part: Part,
  { task, libraries }: { task: SectionTask; libraries: string },
): Promise<string | undefined> {
  const left = (task.until - Date.now()) / 1000;
  if (left < fewestSeconds) return void part.endsWith('Left out: no time was left.');
  // A dry run shares its processor with others.
  const most = options.dry ? 3 * section.seconds : section.seconds;
  const until = Date.now() + 1000 * Math.min(most, left);
  const { env } = section;
  const { tell } = part;
  const problem = await run({ ...task, section: section.name, until }, { libraries, tell, ...(env && { env }) });
  const took = `${((Date.now() - part.startedAt) / 1000).toFixed(0)} s`;
  part.endsWith(problem === undefined ? `It took ${took}.` : `**Ended after ${took}**: ${problem}`);
  return problem;
}

function deviceName(): string {
  if (device === 'cpu') return cpus()[0].model.trim();
  const asked = ['--query-gpu=name', '--format=csv,noheader', `--id=${device.replace('cuda:', '')}`];
  return (device !== 'webgpu' && printed('nvidia-smi', asked)) || device;
}

/** Folders of the CUDA that PyTorch's packages have. */
function cudaLibraries(): string {
  if (options.python === undefined || device === 'cpu') return '';
  const code =
    'import glob, importlib.util, os; packages = os.path.dirname(os.path.dirname(importlib.util.find_spec("torch").origin)); print(":".join(glob.glob(packages + "/nvidia/*/lib")))';
  return printed(options.python, ['-c', code]) ?? '';
}

function finish(code: number): never {
  endAll();
  if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true });
  process.exit(code);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => {
    page?.write();
    finish(1);
  });

main().then(
  () => finish(0),
  ({ message }: Error) => {
    process.stderr.write(`${message}\n`);
    finish(1);
  },
);
