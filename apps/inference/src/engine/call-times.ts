import { LruMap } from '@app/process';

/** Kinds of calls that are remembered: callers choose sizes and lengths of text, so there is no end of them. */
const mostKinds = 100;
/** Last times kept for each number of rows. The shortest counts: other work of the machine only makes a call longer. */
const sampleCount = 5;
/** Times that are needed before a number of rows counts as measured. */
const neededTimes = 3;
/** After so many calls of other sizes a size is measured anew, so that a bad measurement does not stick. */
const remeasureAfterCalls = 300;
/** A row that is dearer by no more than this share counts as equally cheap. */
const tolerance = 0.05;
/** The most rows of a call in any case, on the processor and on a GPU. */
const most = { cpu: 16, gpu: 64 };
/** After so many calls a larger one is tried again: the memory that it lacked may have been another process's. */
const retryAfterCalls = 1_000;

interface TimesOfCalls {
  calls: number;
  /** Milliseconds of the last calls of so many rows, and the number of the last one. */
  byRows: Map<number, { at: number; ms: number[] }>;
  /** Half the rows of a call that ran out of memory; more are tried after `until` calls. */
  limit?: { rows: number; until: number };
}

/** Times of calls of the U-Net and other pieces of work, as measured of late, and the rows that a call is to have. */
export class CallTimes {
  private readonly byKey = new LruMap<TimesOfCalls>(mostKinds);
  private readonly means = new LruMap<number>(mostKinds);

  constructor(private readonly isCpu: boolean) {}

  /** @param callKey equal for calls that take equally long for a number of rows */
  noteCall(callKey: string, rows: number, ms: number): void {
    const times = this.timesOf(callKey);
    times.calls++;
    const known = times.byRows.get(rows);
    // The first call of a size is slower than the next ones, and does not count.
    times.byRows.set(rows, { at: times.calls, ms: known ? [...known.ms, ms].slice(-sampleCount) : [] });
    if (known) for (const name of [callKey, 'any row']) this.note(name, ms / rows);
  }

  /** Milliseconds of a row of these calls, else of any; 0 until that is known. */
  rowMs(callKey: string): number {
    return this.of(callKey) || this.of('any row');
  }

  /** A piece of work of this name took so long. */
  note(name: string, ms: number): void {
    const before = this.means.get(name) ?? ms;
    this.means.set(name, before + (Math.min(ms, 2 * before) - before) / 4);
  }

  /** Milliseconds of a piece of work of this name, in a moving average; 0 until that is known. */
  of(name: string): number {
    return this.means.get(name) ?? 0;
  }

  /**
   * Rows that a call is to have at most: the fewest with which a row is about as cheap as with any number. One picture's
   * rows are measured first, then twice as many each time, until two such steps have made no row cheaper.
   * @param ofPicture rows of one picture
   */
  mostRows(callKey: string, ofPicture: number): number {
    const { limit, calls } = this.timesOf(callKey);
    const learnt = limit && calls < limit.until ? limit.rows : Infinity;
    const top = Math.min(learnt, this.isCpu ? most.cpu : most.gpu);
    const measured: { rows: number; rowMs: number }[] = [];
    let best = { rows: ofPicture, rowMs: Infinity };
    for (let rows = ofPicture; rows <= Math.max(top, ofPicture) && rows <= 4 * best.rows; rows *= 2) {
      const ms = this.msOf(callKey, rows);
      if (ms === undefined) return rows;
      measured.push({ rows, rowMs: ms / rows });
      if (ms / rows < best.rowMs * (1 - tolerance)) best = measured.at(-1)!;
    }
    return measured.find(({ rowMs }) => rowMs <= best.rowMs * (1 + tolerance))!.rows;
  }

  /** A call of so many rows ran out of memory: the next ones have half of them. @returns whether that is fewer */
  halve(callKey: string, rows: number, ofPicture: number): boolean {
    if (rows <= ofPicture) return false;
    const times = this.timesOf(callKey);
    times.limit = { rows: Math.max(ofPicture, Math.floor(rows / 2)), until: times.calls + retryAfterCalls };
    return true;
  }

  private timesOf(callKey: string): TimesOfCalls {
    const times = this.byKey.get(callKey) ?? { calls: 0, byRows: new Map() };
    this.byKey.set(callKey, times);
    return times;
  }

  private msOf(callKey: string, rows: number): number | undefined {
    const { calls, byRows } = this.timesOf(callKey);
    const { at, ms } = byRows.get(rows) ?? { at: 0, ms: [] };
    return ms.length < neededTimes || calls - at >= remeasureAfterCalls ? undefined : Math.min(...ms);
  }
}
