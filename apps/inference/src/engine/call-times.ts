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
/** Kinds (of model, size and prompt length) that are remembered; the one used longest ago is forgotten first. */
const keptKinds = 100;

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
  private readonly kinds = new Map<string, { calls: number; byRows: Map<number, Measured> }>();
  private lastRowMs = 0;
  private lastDecodeMs = 0;

  /** What a row of a call takes at present, whatever its kind; 0 until that is known. */
  get rowMs(): number {
    return this.lastRowMs;
  }

  /** Rows of a call that take as long as decoding a picture at present; 0 until that is known. */
  get decodeRows(): number {
    return this.lastRowMs === 0 ? 0 : this.lastDecodeMs / this.lastRowMs;
  }

  noteDecoding(ms: number): void {
    this.lastDecodeMs = averaged(this.lastDecodeMs || undefined, ms);
  }

  /**
   * @param ms milliseconds of the device that the call had
   * @param isShared whether the device did other work meanwhile. Such a call takes no certain time: it counts for `rowMs`, and is
   * compared with no other
   */
  note(kind: string, rows: number, ms: number, isShared = false): void {
    if (isShared) return this.noteRow(ms / rows);
    const times = this.kinds.get(kind) ?? { calls: 0, byRows: new Map<number, Measured>() };
    this.kinds.delete(kind);
    this.kinds.set(kind, times);
    if (this.kinds.size > keptKinds) this.kinds.delete(this.kinds.keys().next().value!);
    const before = times.byRows.get(rows);
    times.calls++;
    if (!before) times.byRows.set(rows, { at: times.calls });
    else {
      times.byRows.set(rows, { at: times.calls, ms: averaged(before.ms, ms) });
      this.noteRow(ms / rows);
    }
  }

  /**
   * Whether two pictures are done sooner in the mean if they share calls than one after the other: if a call for both
   * takes less than one and a half times as long. Until that is measured, it is taken to be so.
   * @param rows of one picture
   */
  isSharingSooner(kind: string, rows: number): boolean {
    const [one, both] = [this.msOf(kind, rows), this.msOf(kind, 2 * rows)];
    return one === undefined || both === undefined || both < 1.5 * one;
  }

  /**
   * Whether a row takes clearly less time in a call of `rows` than in one of half as many; false
   * until both are measured.
   */
  isCheaperPerRow(kind: string, rows: number): boolean {
    const [half, all] = [this.msOf(kind, rows / 2), this.msOf(kind, rows)];
    return half !== undefined && all !== undefined && all < 0.9 * 2 * half;
  }

  private noteRow(ms: number): void {
    this.lastRowMs = averaged(this.lastRowMs || undefined, ms);
  }

  private msOf(kind: string, rows: number): number | undefined {
    const times = this.kinds.get(kind);
    const measured = times?.byRows.get(rows);
    return measured && times!.calls - measured.at < keptCalls ? measured.ms : undefined;
  }
}

function averaged(before: number | undefined, ms: number): number {
  return before === undefined ? ms : before + (Math.min(ms, mostOfAverage * before) - before) * weight;
}
