import { LRUCache } from 'lru-cache';

/** After that time it is tried again: the cause may have been a disk or a network. */
const triedAgainMs = 600_000;
/** Far more than anyone installs, or asks for in that time. */
const most = 100;

/** Faults of the last minutes. A key must change with the state of its files. */
export const knownFaults = <T extends object>(): LRUCache<string, T> =>
  new LRUCache<string, T>({ max: most, ttl: triedAgainMs });
