import { LRUCache } from 'lru-cache';

/** Then what was at fault is tried again, because it may have been a disk or a network. */
const triedAgainMs = 600_000;
/** Far more than anyone installs, or asks for in that time. */
const most = 100;

/** Faults that were found within the last minutes, by keys that files in another state do not have. */
export const knownFaults = <T extends object>(): LRUCache<string, T> =>
  new LRUCache<string, T>({ max: most, ttl: triedAgainMs });
