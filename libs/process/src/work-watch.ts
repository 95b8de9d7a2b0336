import { workerData } from 'node:worker_threads';
import { memorySignal } from './work-process';

const watchMs = 100;

// The thread that ends the whole process, whatever its other threads do, when it exceeds its memory or has lost its
// parent: the work itself may block the event loop.
const { parentPid, residentBytes } = workerData as { parentPid: number; residentBytes: number };
setInterval(() => {
  if (process.memoryUsage.rss() > residentBytes) process.kill(process.pid, memorySignal);
  if (process.ppid !== parentPid) process.kill(process.pid, 'SIGKILL');
}, watchMs);
