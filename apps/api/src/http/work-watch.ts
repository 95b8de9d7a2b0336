import { workerData } from 'node:worker_threads';
import { memorySignal } from './work-process';

/** Start parameters of a child's watching thread. */
export interface WatchSettings {
  parentPid: number;
  residentBytes: number;
}

const intervalMs = 100;
const { parentPid, residentBytes } = workerData as WatchSettings;

// Ends the whole process, whatever its other threads do, when it exceeds its memory or has lost its parent.
setInterval(() => {
  if (process.memoryUsage.rss() > residentBytes) process.kill(process.pid, memorySignal);
  if (process.ppid !== parentPid) process.kill(process.pid, 'SIGKILL');
}, intervalMs);
