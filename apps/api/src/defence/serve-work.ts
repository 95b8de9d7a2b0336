// Attack: a file that takes all memory when it is read, or that keeps its process busy after the api has ended.
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { exitWithParent } from '@app/process';
import type { WorkAnswer, WorkOrder } from './work-process';
import { memorySignal, residentVariable } from './work-process';

const watchMs = 100;

// The same file is the thread that ends the whole process, whatever its other threads do, when it exceeds its memory or
// has lost its parent: the work itself may block the event loop.
if (!isMainThread) {
  const { parentPid, residentBytes } = workerData as { parentPid: number; residentBytes: number };
  setInterval(() => {
    if (process.memoryUsage.rss() > residentBytes) process.kill(process.pid, memorySignal);
    if (process.ppid !== parentPid) process.kill(process.pid, 'SIGKILL');
  }, watchMs);
}

/** The child's side of a `WorkProcess`: runs what comes. An error is reported as its message and ends nothing. */
export function serveWork<Order, Result>(perform: (order: Order) => Result | Promise<Result>): void {
  exitWithParent();
  const residentBytes = Number(process.env[residentVariable]) * 2 ** 20;
  new Worker(__filename, {
    workerData: { parentPid: process.ppid, residentBytes },
    resourceLimits: { maxOldGenerationSizeMb: 32 },
  }).unref();
  const tell = (answer: WorkAnswer): void => void process.send?.(answer);
  process.on('message', ({ id, order }: WorkOrder) => {
    new Promise<Result>((resolve) => resolve(perform(order as Order))).then(
      (result) => tell({ id, result }),
      (error: Error) => tell({ id, error: { message: error.message } }),
    );
  });
  // Listening refs the channel again; while it is open the process stays alive.
  process.channel?.ref();
  tell({ ready: true });
}
