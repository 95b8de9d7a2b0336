import 'reflect-metadata';
import { chmodSync, closeSync, existsSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { loadConfig } from '@app/config';
import { EmbeddedPostgres, migrate } from '@app/database';
import { ImageTask, isTerminated, newIdentifier } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { WakeUps } from '@app/queue';
import { DataSource } from 'typeorm';
import { createInference } from '../apps/inference/src/create-inference';

const { values: options } = parseArgs({
  options: {
    threads: { type: 'string', default: '2' },
    steps: { type: 'string', default: '20' },
    model: { type: 'string', default: 'shapes' },
    /** Runs only scenarios whose name contains this. */
    only: { type: 'string', default: '' },
  },
});

/** Resolution of the measurement; every reported delay includes it. */
const resolutionMs = 1;

/** The tasks of a scenario, and how many. */
const scenarios: { name: string; tasks: number; values: Partial<ImageTask> }[] = [
  { name: 'first picture, model loaded', tasks: 1, values: {} },
  { name: '1 picture a task, png', tasks: 8, values: {} },
  { name: '8 pictures a task, png', tasks: 2, values: { numImages: 8 } },
  { name: '8 pictures a task, webp', tasks: 1, values: { numImages: 8, outputFormat: 'webp' } },
  { name: 'high resolution, png', tasks: 2, values: { highResolution: true } },
  { name: 'high resolution, jpeg', tasks: 2, values: { highResolution: true, outputFormat: 'jpeg' } },
];

/**
 * Runs a worker in this process and measures, for each scenario, how long its event loop was blocked and
 * how much its memory grew.
 */
async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-bench-'));
  // If this runs as root, PostgreSQL's own user must be able to enter the folder.
  chmodSync(folder, 0o711);
  const postgres = await EmbeddedPostgres.start(folder);
  await migrate(postgres.url);
  const config = loadConfig({
    ...process.env,
    DATA_DIR: folder,
    INFERENCE_THREADS: options.threads,
    LOG_LEVEL: 'error',
  });
  const logger = new JsonLogger('bench', config.logLevel);
  const worker = await createInference({ config, databaseUrl: postgres.url, logger });
  const dataSource = worker.get(DataSource);
  const draw = async (tasks: number, values: Partial<ImageTask>): Promise<void> => {
    const rows = Array.from({ length: tasks }, (_, i) => row(i, values));
    await dataSource.manager.insert(ImageTask, rows);
    worker.get(WakeUps).ask();
    for (const { id } of rows) await terminated(dataSource, id);
  };

  console.log(['scenario', 'pictures', 'seconds', 'p50 ms', 'p99 ms', 'max ms', 'own max ms', 'memory +MB'].join('\t'));
  for (const { name, tasks, values } of scenarios.filter(({ name }) => name.includes(options.only))) {
    const delays = monitorEventLoopDelay({ resolution: resolutionMs });
    const memory = watchMemory();
    const turns = watchTurns();
    const startedAt = performance.now();
    delays.enable();
    await draw(tasks, values);
    delays.disable();
    const seconds = (performance.now() - startedAt) / 1000;
    const held = [delays.percentile(50), delays.percentile(99), delays.max].map((ns) =>
      (ns / 1e6 - resolutionMs).toFixed(1),
    );
    held.push(turns.stop().toFixed(1));
    const pictures = tasks * (values.numImages ?? 1);
    console.log([name, pictures, seconds.toFixed(2), ...held, (memory.stop() / 2 ** 20).toFixed(0)].join('\t'));
  }
  await worker.close();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** Tracks the resident memory of the process. `stop` returns its largest growth in bytes. */
function watchMemory(): { stop: () => number } {
  const base = process.memoryUsage.rss();
  let peak = base;
  const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 5);
  return {
    stop: () => {
      clearInterval(timer);
      return peak - base;
    },
  };
}

/**
 * Tracks the CPU time of this thread per turn of its event loop; on a shared machine wall-clock time would include
 * other programs. `stop` returns the most milliseconds of one turn; NaN if the system does not report them.
 */
function watchTurns(): { stop: () => number } {
  const file = existsSync('/proc/thread-self/schedstat') ? openSync('/proc/thread-self/schedstat', 'r') : undefined;
  const buffer = Buffer.alloc(64);
  const cpuMs = (): number =>
    file === undefined ? NaN : Number.parseInt(buffer.toString('latin1', 0, readSync(file, buffer, 0, 64, 0))) / 1e6;
  let [last, longest] = [cpuMs(), file === undefined ? NaN : 0];
  const timer = setInterval(() => {
    const now = cpuMs();
    longest = Math.max(longest, now - last);
    last = now;
  }, 1);
  return {
    stop: () => {
      clearInterval(timer);
      if (file !== undefined) closeSync(file);
      return longest;
    },
  };
}

async function terminated(dataSource: DataSource, id: string): Promise<void> {
  for (;;) {
    const { status, error } = await dataSource.manager.findOneByOrFail(ImageTask, { id });
    if (status === 'failed') throw new Error(error ?? 'failed');
    if (isTerminated(status)) return;
    await delay(20);
  }
}

function row(index: number, values: Partial<ImageTask>): ImageTask {
  return Object.assign(new ImageTask(), {
    id: newIdentifier(),
    kind: 'generation',
    ownerId: newIdentifier(),
    prompt: 'a red circle on a blue background',
    cfg: 7.5,
    steps: Number(options.steps),
    seed: index,
    model: options.model,
    aspectRatio: 'square',
    highResolution: false,
    numImages: 1,
    status: 'queued',
    createdAt: new Date(),
    ...values,
  } satisfies Partial<ImageTask>);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
