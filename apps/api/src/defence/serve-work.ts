// Attack: a file that takes all memory when it is read, or that keeps its process busy after the api has ended.
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { exitWithParent } from '@app/process';
import { memorySignal, residentVariable, type WorkAnswer } from './work-process';

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

/** The child's side of a `WorkProcess`: runs the one job that comes. An error is reported as its message. */
export function serveWork<Order, Result>(perform: (order: Order) => Result | Promise<Result>): void {
  exitWithParent();
  const residentBytes = Number(process.env[residentVariable]) * 2 ** 20;
  new Worker(__filename, {
    workerData: { parentPid: process.ppid, residentBytes },
    resourceLimits: { maxOldGenerationSizeMb: 32 },
  }).unref();
  const tell = (answer: WorkAnswer): void => void process.send?.(answer);
  process.once('message', (order: Order) => {
    new Promise<Result>((resolve) => resolve(perform(order))).then(
      (result) => tell({ result }),
      (error: Error) => tell({ error: error.message }),
    );
  });
  // While the channel is open the process stays alive.
  process.channel?.ref();
  tell({ ready: true });
}
