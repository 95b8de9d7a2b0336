import { LruMap } from '@app/process';
import type { Lane } from '../lane';

/** The weight of a new measurement in the moving average. */
const weight = 0.25;
/**
 * A measurement counts as at most this multiple of the average. A stall of the machine makes one call as long as
 * hundreds, and would spoil the average for dozens of calls. With the limit one call raises it by a quarter at most,
 * and a machine that has really become slower is still noticed within a few calls.
 */
const mostOfAverage = 2;
/** Other calls of the kind after which a measurement is forgotten, so that one bad measurement does not stick. */
const keptCalls = 300;
/**
 * Kinds (of model, size and prompt length) of which something is remembered: callers choose them, so there is no end of
 * them, and far fewer are drawn at a time.
 */
export const keptKinds = 100;

/** Calls of one kind with one number of rows. */
interface Measured {
  /** Undefined after the first call, which is slower than the next ones and does not count. */
  ms?: number;
  /** The number of the kind's calls at the last of these. */
  at: number;
}

/**
 * What calls of the U-Net take, by their kind of picture and their rows, and what decoding takes, as measured of late.
 */
export class CallTimes {
  private readonly kinds = new LruMap<{ calls: number; byRows: Map<number, Measured> }>(keptKinds);
  private readonly rowTimes = new MeanTimes();
  private readonly decodings = new MeanTimes();

  /**
   * Milliseconds of the device that a row of a call takes at present.
   * @param kind without one, in the mean of all kinds
   * @returns 0 until that is known
   */
  rowMs(kind?: string): number {
    return this.rowTimes.of(kind) ?? 0;
  }

  /** Rows of a call of a kind that take as long as decoding one of its pictures at present; 0 until that is known. */
  decodeRows(kind: string): number {
    const rowMs = this.rowMs(kind);
    return rowMs === 0 ? 0 : (this.decodings.of(kind) ?? 0) / rowMs;
  }

  /** @param ms milliseconds of the device that decoding a picture of this kind had */
  noteDecoding(kind: string, ms: number): void {
    this.decodings.note(kind, ms);
  }

  /**
   * @param ms milliseconds of the device that the call had
   * @param isShared whether the device did other work meanwhile. Such a call takes no certain time: it counts for
   * `rowMs`, and is compared with no other
   */
  note(
    kind: string,
    rows: number,
    ms: number,
    { isShared = false, lane }: { isShared?: boolean; lane?: Lane } = {},
  ): void {
    if (isShared) return this.rowTimes.note(kind, ms / rows);
    const key = keyOf(kind, lane);
    const times = this.kinds.get(key) ?? { calls: 0, byRows: new Map<number, Measured>() };
    this.kinds.set(key, times);
    const before = times.byRows.get(rows);
    times.calls++;
    if (!before) times.byRows.set(rows, { at: times.calls });
    else {
      times.byRows.set(rows, { at: times.calls, ms: averaged(before.ms, ms) });
      this.rowTimes.note(kind, ms / rows);
    }
  }

  /**
   * Whether two pictures are done sooner in the mean if they share calls than one after the other: if a call for both
   * takes less than one and a half times as long. Until that is measured, it is taken to be so.
   * @param rows of one picture
   */
  isSharingSooner(kind: string, rows: number, lane?: Lane): boolean {
    const key = keyOf(kind, lane);
    const [one, both] = [this.msOf(key, rows), this.msOf(key, 2 * rows)];
    return one === undefined || both === undefined || both < 1.5 * one;
  }

  /**
   * Whether a row takes clearly less time in a call of `rows` than in one of half as many; false
   * until both are measured. Calls by all threads are compared.
   */
  isCheaperPerRow(kind: string, rows: number): boolean {
    const [half, all] = [this.msOf(kind, rows / 2), this.msOf(kind, rows)];
    return half !== undefined && all !== undefined && all < 0.9 * 2 * half;
  }

  private msOf(key: string, rows: number): number | undefined {
    const times = this.kinds.get(key);
    const measured = times?.byRows.get(rows);
    return measured && times!.calls - measured.at < keptCalls ? measured.ms : undefined;
  }
}

/** What something takes at present, for each kind and in the mean of all. */
class MeanTimes {
  private readonly kinds = new LruMap<number>(keptKinds);
  private all: number | undefined;

  note(kind: string, ms: number): void {
    this.kinds.set(kind, averaged(this.kinds.get(kind), ms));
    this.all = averaged(this.all, ms);
  }

  /** @returns milliseconds; undefined until they are known */
  of(kind?: string): number | undefined {
    return kind === undefined ? this.all : this.kinds.get(kind);
  }
}

/** Calls of a lane take other times than those of all threads. */
const keyOf = (kind: string, lane: Lane | undefined): string => (lane === undefined ? kind : `${kind} in a lane`);

function averaged(before: number | undefined, ms: number): number {
  return before === undefined ? ms : before + (Math.min(ms, mostOfAverage * before) - before) * weight;
}
