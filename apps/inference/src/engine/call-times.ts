import { type Device, hasCallsInPowersOfTwo, powerOfTwoFrom, providerOf } from '@app/diffusion';
import { LRUCache } from 'lru-cache';

/** Kinds of calls that are remembered. Callers choose sizes and lengths of text, so there are more than can be kept. */
const maxKinds = 100;
/** Last times that are kept for each number of rows. The shortest counts, as other programs only slow calls down. */
const sampleCount = 5;
/** Number of times that are needed before a number of rows counts as measured. */
const minSamples = 3;
/** Calls after which a number of rows that was not used is measured again, so that a bad time does not last. */
const remeasureAfterCalls = 300;
/** Share by which a row may take longer than the fastest one and still count as equally fast. */
const tolerance = 0.05;
const maxRowsOn = { cpu: 16, gpu: 64 };
/** Calls after which a larger one is tried again: another process may have returned the memory that was lacking. */
const retryAfterCalls = 1_000;

/** Name under which the time of a row in any call is noted. */
const anyRow = 'any row';

interface TimesOfCalls {
  calls: number;
  /** By number of rows: the milliseconds of the last calls, and the value of `calls` at the last one. */
  byRows: Map<number, { at: number; ms: number[] }>;
  /** Limit after a call that ran out of memory: half of its rows, until `calls` has this value. */
  limit?: { rows: number; until: number };
}

/** Recent times of calls of the denoiser and of other work, and the best number of rows of a call. */
export class CallTimes {
  private readonly byKey = new LRUCache<string, TimesOfCalls>({ max: maxKinds });
  private readonly means = new LRUCache<string, number>({ max: maxKinds });

  constructor(private readonly device: Device) {}

  recordCall(callKey: string, rows: number, ms: number): void {
    const times = this.timesOf(callKey);
    times.calls++;
    const size = this.sizeOf(rows);
    const known = times.byRows.get(size);
    // The first call of a size is slower than the next ones, and does not count.
    times.byRows.set(size, { at: times.calls, ms: known ? [...known.ms, ms].slice(-sampleCount) : [] });
    if (known) for (const name of [callKey, anyRow]) this.recordWork(name, ms / rows);
  }

  /** Milliseconds of a row in calls of this key, else in any call; 0 until one is known. */
  rowMs(callKey: string): number {
    return this.meanMs(callKey) || this.meanMs(anyRow);
  }

  /** Notes the milliseconds of other work. Outliers count as twice the mean: the machine may have stood still. */
  recordWork(name: string, ms: number): void {
    const before = this.means.get(name) ?? ms;
    this.means.set(name, before + (Math.min(ms, 2 * before) - before) / 4);
  }

  /** Moving average of the milliseconds of work of this name; 0 until one is known. */
  meanMs(name: string): number {
    return this.means.get(name) ?? 0;
  }

  /**
   * Rows that a call should have at most: the smallest number with which a row is about as fast as with any other.
   * Calls of one picture are measured first, then of twice as many rows each time, until two doublings gain nothing.
   */
  cheapestRows(callKey: string, rowsPerPicture: number): number {
    const { limit, calls } = this.timesOf(callKey);
    const memoryLimit = limit && calls < limit.until ? limit.rows : Infinity;
    const top = Math.min(memoryLimit, providerOf(this.device) === 'cpu' ? maxRowsOn.cpu : maxRowsOn.gpu);
    const measured: { rows: number; rowMs: number }[] = [];
    let best = { rows: rowsPerPicture, rowMs: Infinity };
    for (let rows = rowsPerPicture; rows <= Math.max(top, rowsPerPicture) && rows <= 4 * best.rows; rows *= 2) {
      const ms = this.shortestMs(callKey, rows);
      if (ms === undefined) return rows;
      measured.push({ rows, rowMs: ms / rows });
      if (ms / rows < best.rowMs * (1 - tolerance)) best = measured.at(-1)!;
    }
    return measured.find(({ rowMs }) => rowMs <= best.rowMs * (1 + tolerance))!.rows;
  }

  /** Halves the rows of the next calls after one that ran out of memory. @returns false if that had only one picture */
  halve(callKey: string, rows: number, rowsPerPicture: number): boolean {
    if (rows <= rowsPerPicture) return false;
    const times = this.timesOf(callKey);
    const half = Math.floor(this.sizeOf(rows) / 2);
    times.limit = { rows: Math.max(rowsPerPicture, half), until: times.calls + retryAfterCalls };
    return true;
  }

  /** Rows that the device computes in a call of this many. */
  private sizeOf(rows: number): number {
    return hasCallsInPowersOfTwo(this.device) ? powerOfTwoFrom(rows) : rows;
  }

  private timesOf(callKey: string): TimesOfCalls {
    const times = this.byKey.get(callKey) ?? { calls: 0, byRows: new Map() };
    this.byKey.set(callKey, times);
    return times;
  }

  /** Milliseconds of the shortest of the last calls; undefined if this number of rows still has to be measured. */
  private shortestMs(callKey: string, rows: number): number | undefined {
    const { calls, byRows } = this.timesOf(callKey);
    const { at, ms } = byRows.get(this.sizeOf(rows)) ?? { at: 0, ms: [] };
    return ms.length < minSamples || calls - at >= remeasureAfterCalls ? undefined : Math.min(...ms);
  }
}
