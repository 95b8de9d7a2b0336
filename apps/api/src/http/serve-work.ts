import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { exitWithParent } from '@app/process';
import type { WatchSettings } from './work-watch';
import type { WorkAnswer, WorkOrder } from './work-process';
import { residentVariable } from './work-process';

/**
 * The child's side of a `WorkProcess`: runs each job that comes. An error is reported as its message and ends nothing.
 * A separate thread watches memory and the parent, because the work may block the event loop.
 */
export function serveWork<Order, Result>(perform: (order: Order) => Result | Promise<Result>): void {
  exitWithParent();
  const workerData: WatchSettings = {
    parentPid: process.ppid,
    residentBytes: Number(process.env[residentVariable]) * 2 ** 20,
  };
  new Worker(join(__dirname, 'work-watch.js'), { workerData, resourceLimits: { maxOldGenerationSizeMb: 32 } }).unref();
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
