import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { exitWithParent } from './parent';
import { residentVariable, type WorkAnswer } from './work-process';

/** The child's side of a `WorkProcess`: runs the one job that comes. An error is reported as its message. */
export function serveWork<Order, Result>(perform: (order: Order) => Result | Promise<Result>): void {
  exitWithParent();
  const residentBytes = Number(process.env[residentVariable]) * 2 ** 20;
  new Worker(join(__dirname, 'work-watch.js'), {
    workerData: { parentPid: process.ppid, residentBytes },
    resourceLimits: { maxOldGenerationSizeMb: 32 },
  }).unref();
  const answer = (message: WorkAnswer): void => void process.send?.(message);
  process.once('message', (order: Order) => {
    new Promise<Result>((resolve) => resolve(perform(order))).then(
      (result) => answer({ result }),
      (error: Error) => answer({ error: error.message }),
    );
  });
  // While the channel is open the process stays alive.
  process.channel?.ref();
  answer({ ready: true });
}
