/** What a new measurement counts for, beside all before it. */
const weight = 0.25;
/** Groups are as many as there are models, sizes and prompt lengths; those that were used longest ago are forgotten. */
const keptGroups = 100;

/** What calls of the U-Net take, by their group of pictures and their rows, as measured of late. */
export class CallTimes {
  /** Milliseconds by rows; undefined after the first call, which is slower than the next ones and does not count. */
  private readonly groups = new Map<string, Map<number, number | undefined>>();
  private lastRowMs = 0;

  /** What a row of a call takes at present, whatever its group; 0 before the first. */
  get rowMs(): number {
    return this.lastRowMs;
  }

  note(group: string, rows: number, ms: number): void {
    this.lastRowMs += (ms / rows - this.lastRowMs) * (this.lastRowMs === 0 ? 1 : weight);
    const times = this.groups.get(group) ?? new Map<number, number | undefined>();
    const isFirst = !times.has(rows);
    const before = times.get(rows) ?? ms;
    times.set(rows, isFirst ? undefined : before + (ms - before) * weight);
    this.groups.delete(group);
    this.groups.set(group, times);
    if (this.groups.size > keptGroups) this.groups.delete(this.groups.keys().next().value!);
  }

  /**
   * Whether two pictures are done sooner in the mean if they share calls than one after the other: if a call for both takes less than
   * one and a half times as long. Until that is measured, it is taken to be so.
   * @param rows of one picture
   */
  isSharingSooner(group: string, rows: number): boolean {
    const times = this.groups.get(group);
    const [one, both] = [times?.get(rows), times?.get(2 * rows)];
    return one === undefined || both === undefined || both < 1.5 * one;
  }
}
