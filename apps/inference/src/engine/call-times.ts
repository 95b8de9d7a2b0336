import { type Device, hasCallsInPowersOfTwo, powerOfTwoFrom, providerOf } from '@app/diffusion';
import { LruMap } from '@app/process';

/** Kinds of calls that are remembered. Callers choose sizes and lengths of text, so there is no end of them. */
const maxKinds = 100;
/** Times kept for each number of rows, the last ones. The shortest counts: other programs only make a call longer. */
const sampleCount = 5;
/** Times after which a number of rows counts as measured. */
const minSamples = 3;
/** Calls of other numbers of rows after which one is made again with this number, so that a bad time does not last. */
const remeasureAfterCalls = 300;
/** Share by which a row may take longer and count as equally cheap. */
const tolerance = 0.05;
/** Most rows of a call on the processor and on a GPU. */
const maxRowsOn = { cpu: 16, gpu: 64 };
/** Calls after which a larger one is tried again: the memory that it lacked may have been another process's. */
const retryAfterCalls = 1_000;

/** Name under which the time of a row in any call is noted. */
const anyRow = 'any row';

interface TimesOfCalls {
  calls: number;
  /** For each number of rows the milliseconds of the last calls, and the count of calls at the last one. */
  byRows: Map<number, { at: number; ms: number[] }>;
  /** Limit after a call that ran out of memory: half of its rows, until so many calls are made. */
  limit?: { rows: number; until: number };
}

/** Times of calls of the U-Net and of other work, as measured lately, and the number of rows that a call is to have. */
export class CallTimes {
  private readonly byKey = new LruMap<TimesOfCalls>(maxKinds);
  private readonly means = new LruMap<number>(maxKinds);

  constructor(private readonly device: Device) {}

  /** Notes the milliseconds of a call. @param callKey of the drawings in it */
  noteCall(callKey: string, rows: number, ms: number): void {
    const times = this.timesOf(callKey);
    times.calls++;
    const size = this.sizeOf(rows);
    const known = times.byRows.get(size);
    // The first call of a size is slower than the next ones, and does not count.
    times.byRows.set(size, { at: times.calls, ms: known ? [...known.ms, ms].slice(-sampleCount) : [] });
    if (known) for (const name of [callKey, anyRow]) this.noteWork(name, ms / rows);
  }

  /** Milliseconds of a row in calls of this key, else in any call; 0 until one is known. */
  rowMs(callKey: string): number {
    return this.meanMs(callKey) || this.meanMs(anyRow);
  }

  /** Notes the milliseconds of other work. A much longer time counts as twice the usual one: the machine stood still. */
  noteWork(name: string, ms: number): void {
    const before = this.means.get(name) ?? ms;
    this.means.set(name, before + (Math.min(ms, 2 * before) - before) / 4);
  }

  /** Milliseconds of work of this name, in a moving average; 0 until one is known. */
  meanMs(name: string): number {
    return this.means.get(name) ?? 0;
  }

  /**
   * Rows that a call is to have at most: the fewest with which a row is about as cheap as with any number. Calls with one
   * picture are measured first, then with twice as many rows each time, until two such steps have made no row cheaper.
   * @param ofPicture rows of one picture
   */
  cheapestRows(callKey: string, ofPicture: number): number {
    const { limit, calls } = this.timesOf(callKey);
    const limitOfMemory = limit && calls < limit.until ? limit.rows : Infinity;
    const top = Math.min(limitOfMemory, providerOf(this.device) === 'cpu' ? maxRowsOn.cpu : maxRowsOn.gpu);
    const measured: { rows: number; rowMs: number }[] = [];
    let best = { rows: ofPicture, rowMs: Infinity };
    for (let rows = ofPicture; rows <= Math.max(top, ofPicture) && rows <= 4 * best.rows; rows *= 2) {
      const ms = this.shortestMs(callKey, rows);
      if (ms === undefined) return rows;
      measured.push({ rows, rowMs: ms / rows });
      if (ms / rows < best.rowMs * (1 - tolerance)) best = measured.at(-1)!;
    }
    return measured.find(({ rowMs }) => rowMs <= best.rowMs * (1 + tolerance))!.rows;
  }

  /** Halves the rows of the next calls after one that ran out of memory. @returns false if it had one picture */
  halve(callKey: string, rows: number, ofPicture: number): boolean {
    if (rows <= ofPicture) return false;
    const times = this.timesOf(callKey);
    const half = Math.floor(this.sizeOf(rows) / 2);
    times.limit = { rows: Math.max(ofPicture, half), until: times.calls + retryAfterCalls };
    return true;
  }

  /** Rows that the device computes for a call of so many. */
  private sizeOf(rows: number): number {
    return hasCallsInPowersOfTwo(this.device) ? powerOfTwoFrom(rows) : rows;
  }

  private timesOf(callKey: string): TimesOfCalls {
    const times = this.byKey.get(callKey) ?? { calls: 0, byRows: new Map() };
    this.byKey.set(callKey, times);
    return times;
  }

  /** Milliseconds of the shortest of the last calls; undefined if this number of rows is to be measured. */
  private shortestMs(callKey: string, rows: number): number | undefined {
    const { calls, byRows } = this.timesOf(callKey);
    const { at, ms } = byRows.get(this.sizeOf(rows)) ?? { at: 0, ms: [] };
    return ms.length < minSamples || calls - at >= remeasureAfterCalls ? undefined : Math.min(...ms);
  }
}
