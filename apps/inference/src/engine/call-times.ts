import { LruMap } from '@app/process';

/** Kinds of calls that are remembered: callers choose sizes and lengths of text, so there is no end of them. */
const keptKinds = 100;
/** Of each number of rows, the last calls count, in their median: a stall of the machine makes one as long as hundreds. */
const keptTimes = 5;
/** After so many other calls of a kind a measurement is made anew, so that a bad one does not stick. */
const keptCalls = 300;
/** A row has to become cheaper by this share for calls of twice as many rows. */
const worthwhile = 0.03;
/** The most rows of a call in any case, on the processor and on a GPU. */
const most = { cpu: 16, gpu: 64 };
/** After so many calls a larger one is tried again: what memory it lacked may have been another process's. */
const keptLimit = 1_000;

interface KindTimes {
  calls: number;
  byRows: Map<number, { at: number; ms: number[] }>;
  limit?: { rows: number; until: number };
}

/** What calls of the U-Net, decoding and loading take, as measured of late, and so how many rows a call is to have. */
export class CallTimes {
  private readonly kinds = new LruMap<KindTimes>(keptKinds);
  private readonly means = new LruMap<number>(keptKinds);

  constructor(private readonly isCpu: boolean) {}

  /** @param kind of calls that take equally long for a number of rows */
  noteCall(kind: string, rows: number, ms: number): void {
    const times = this.timesOf(kind);
    times.calls++;
    const known = times.byRows.get(rows);
    // The first call of a size is slower than the next ones, and does not count.
    times.byRows.set(rows, { at: times.calls, ms: known ? [...known.ms, ms].slice(-keptTimes) : [] });
    if (known) for (const name of [kind, 'rows']) this.note(name, ms / rows);
  }

  /** Milliseconds of a row of this kind at present, else of any kind; 0 until that is known. */
  rowMs(kind: string): number {
    return this.of(kind) || this.of('rows');
  }

  /** Something else than a call of the U-Net took so long. */
  note(name: string, ms: number): void {
    const before = this.means.get(name) ?? ms;
    this.means.set(name, before + (Math.min(ms, 2 * before) - before) / 4);
  }

  /** What `note` was told, in a moving average; 0 until that is known. */
  of(name: string): number {
    return this.means.get(name) ?? 0;
  }

  /**
   * Rows of a call from which on more would not make a row cheaper: twice as many as long as that has helped. A number
   * that is not measured yet is tried.
   * @param ofPicture rows of one picture
   */
  mostRows(kind: string, ofPicture: number): number {
    const { limit, calls } = this.timesOf(kind);
    const learnt = limit && calls < limit.until ? limit.rows : Infinity;
    const top = Math.min(learnt, this.isCpu ? most.cpu : most.gpu);
    let rows = ofPicture;
    for (; 2 * rows <= top; rows *= 2) {
      const [one, two] = [this.msOf(kind, rows), this.msOf(kind, 2 * rows)];
      if (one === undefined || (two !== undefined && two > 2 * one * (1 - worthwhile))) break;
    }
    return rows;
  }

  /** A call of so many rows ran out of memory: the next ones have half of them. @returns whether that is fewer */
  halve(kind: string, rows: number, ofPicture: number): boolean {
    if (rows <= ofPicture) return false;
    const times = this.timesOf(kind);
    times.limit = { rows: Math.max(ofPicture, Math.floor(rows / 2)), until: times.calls + keptLimit };
    return true;
  }

  private timesOf(kind: string): KindTimes {
    const times = this.kinds.get(kind) ?? { calls: 0, byRows: new Map() };
    this.kinds.set(kind, times);
    return times;
  }

  private msOf(kind: string, rows: number): number | undefined {
    const { calls, byRows } = this.timesOf(kind);
    const { at, ms } = byRows.get(rows) ?? { at: 0, ms: [] };
    if (ms.length < 2 || calls - at >= keptCalls) return undefined;
    return ms.toSorted((a, b) => a - b)[Math.floor((ms.length - 1) / 2)];
  }
}
