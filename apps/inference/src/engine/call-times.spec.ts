import { CallTimes } from './call-times';

describe(CallTimes.name, () => {
  /** Makes so many calls of what rows it asks for. @param rowMs of a row in a call of so many */
  function measure(times: CallTimes, rowMs: (rows: number) => number, calls = 100, rowsPerPicture = 2): number[] {
    return Array.from({ length: calls }, () => {
      const rows = times.cheapestRows('kind', rowsPerPicture);
      times.recordCall('kind', rows, rows * rowMs(rows));
      return rows;
    });
  }

  it('tries twice as many rows, and keeps the fewest with which a row is about as cheap as it can be', () => {
    const curve: Record<number, number> = { 2: 10, 4: 9.9, 8: 8, 16: 7.9 };
    const rows = measure(new CallTimes('cpu'), (count) => curve[count]);
    expect(rows.slice(0, 16)).toEqual([2, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 16, 16, 16, 16]);
    expect(rows.at(-1)).toBe(8);
  });

  it('gives up when twice as many rows and four times as many do not help', () => {
    const rows = measure(new CallTimes('cpu'), () => 10);
    expect(new Set(rows)).toEqual(new Set([2, 4, 8]));
    expect(rows.at(-1)).toBe(2);
  });

  it('has calls of more rows on a GPU', () => {
    expect(measure(new CallTimes('cpu'), (rows) => 10 / rows).at(-1)).toBe(16);
    expect(measure(new CallTimes('cuda:0'), (rows) => 10 / rows).at(-1)).toBe(64);
  });

  it('counts what a GPU computes: the next power of two', () => {
    expect(measure(new CallTimes('cuda:0'), (rows) => 10 / rows, 100, 3).at(-1)).toBe(48);
    const times = new CallTimes('cuda:0');
    measure(times, (rows) => 10 / rows);
    expect(times.halve('kind', 5, 2)).toBe(true);
    expect(times.cheapestRows('kind', 2)).toBe(4);
  });

  it('is not misled by the first call of a size, nor by a few that other programs make longer', () => {
    let call = 0;
    const rows = measure(new CallTimes('cpu'), (count) => (call++ % 4 < 2 ? 100 : 10 / count));
    expect(rows.at(-1)).toBe(16);
  });

  it('measures a size anew after a while', () => {
    const times = new CallTimes('cpu');
    measure(times, () => 10);
    const rows = measure(times, (count) => 10 / count, 400);
    expect(rows.at(-1)).toBe(16);
  });

  it('has half of the rows after a call that ran out of memory, down to one picture, for a while', () => {
    const times = new CallTimes('cpu');
    measure(times, (rows) => 10 / rows);
    expect(times.halve('kind', 16, 2)).toBe(true);
    expect(times.cheapestRows('kind', 2)).toBe(8);
    expect(times.halve('kind', 3, 2)).toBe(true);
    expect(times.cheapestRows('kind', 2)).toBe(2);
    expect(times.halve('kind', 2, 2)).toBe(false);
    measure(times, (rows) => 10 / rows, 1_100);
    expect(times.cheapestRows('kind', 2)).toBe(16);
  });

  it('knows what a row of a kind takes, and until then what one of any other does', () => {
    const times = new CallTimes('cpu');
    expect(times.rowMs('kind')).toBe(0);
    for (let i = 0; i < 2; i++) times.recordCall('other', 4, 20);
    expect(times.rowMs('kind')).toBe(5);
    for (let i = 0; i < 2; i++) times.recordCall('kind', 4, 400);
    expect(times.rowMs('kind')).toBe(100);
  });

  it('counts a stall of the machine as twice the usual time at most', () => {
    const times = new CallTimes('cpu');
    times.recordWork('decoding', 10);
    times.recordWork('decoding', 10_000);
    expect(times.meanMs('decoding')).toBe(12.5);
  });
});
