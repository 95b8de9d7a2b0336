import { workerData } from 'node:worker_threads';
import { memorySignal } from './work-process';

/** What the watching thread of a child is started with. */
export interface WatchSettings {
  parentPid: number;
  residentBytes: number;
}

const everyMs = 100;
const { parentPid, residentBytes } = workerData as WatchSettings;

// Ends the whole process, whatever its other threads are at: with more memory than it may take, or without its parent.
setInterval(() => {
  if (process.memoryUsage.rss() > residentBytes) process.kill(process.pid, memorySignal);
  if (process.ppid !== parentPid) process.kill(process.pid, 'SIGKILL');
}, everyMs);
