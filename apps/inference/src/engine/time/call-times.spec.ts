import { CallTimes } from './call-times';

describe(CallTimes.name, () => {
  const measured = (...calls: [rows: number, ms: number][]): CallTimes => {
    const times = new CallTimes();
    for (const [rows, ms] of calls) times.note('square', rows, ms);
    return times;
  };

  it('takes sharing to be sooner until both kinds of calls were measured twice', () => {
    expect(measured().isSharingSooner('square', 2)).toBe(true);
    expect(measured([2, 10], [4, 20], [2, 10]).isSharingSooner('square', 2)).toBe(true);
    expect(measured([2, 10], [4, 20], [2, 10], [4, 20]).isSharingSooner('square', 2)).toBe(false);
    expect(measured([2, 10], [4, 20], [2, 10], [4, 20]).isSharingSooner('other', 2)).toBe(true);
  });

  it('compares a call for two pictures with one and a half calls for one', () => {
    expect(measured([2, 10], [4, 14], [2, 10], [4, 14]).isSharingSooner('square', 2)).toBe(true);
    expect(measured([2, 10], [4, 16], [2, 10], [4, 16]).isSharingSooner('square', 2)).toBe(false);
  });

  it('knows where a row of twice as many takes clearly less time, once both are measured', () => {
    expect(measured([16, 100], [32, 150]).isCheaperPerRow('square', 32)).toBe(false);
    expect(measured([16, 100], [32, 150], [16, 100], [32, 150]).isCheaperPerRow('square', 32)).toBe(true);
    expect(measured([16, 100], [32, 190], [16, 100], [32, 190]).isCheaperPerRow('square', 32)).toBe(false);
  });

  it('does not count the first call of so many rows', () => {
    expect(measured([2, 10], [4, 500], [2, 10], [4, 14]).isSharingSooner('square', 2)).toBe(true);
  });

  it('forgets what was measured long ago, so that it is tried again', () => {
    const times = measured([2, 10], [4, 40], [2, 10], [4, 40]);
    for (let i = 0; i < 299; i++) times.note('square', 2, 10);
    expect(times.isSharingSooner('square', 2)).toBe(false);
    times.note('square', 2, 10);
    expect(times.isSharingSooner('square', 2)).toBe(true);
  });

  it('follows what calls take of late', () => {
    const times = measured([2, 10], [4, 14], [2, 10], [4, 14]);
    for (let i = 0; i < 10; i++) times.note('square', 4, 19);
    expect(times.isSharingSooner('square', 2)).toBe(false);
    expect(times.rowMs('square')).toBeCloseTo(19 / 4, 1);
  });

  it('is changed by a quarter by one call during which the machine stalled', () => {
    const times = measured([2, 10], [4, 14], [2, 10], [4, 14]);
    const before = times.rowMs();
    times.noteDecoding('square', 100);
    times.note('square', 2, 20_000);
    times.noteDecoding('square', 20_000);
    expect([times.rowMs(), times.rowMs('square')]).toEqual([1.25 * before, 1.25 * before]);
    expect(times.decodeRows('square')).toBeCloseTo(125 / times.rowMs());
    expect(times.isSharingSooner('square', 2)).toBe(true);
    times.note('square', 4, 20_000);
    expect(times.isSharingSooner('square', 2)).toBe(true);
  });

  it('learns within a few calls that all have become slower', () => {
    const times = measured([2, 10], [2, 10]);
    for (let i = 0; i < 20; i++) times.note('square', 2, 100);
    expect(times.rowMs('square')).toBeGreaterThan(48);
  });

  it('compares no call that the device made beside other work, and counts it for what a row takes', () => {
    const times = measured([2, 10], [4, 20], [2, 10], [4, 20]);
    for (let i = 0; i < 20; i++) times.note('square', 4, 10, { isShared: true });
    expect(times.isSharingSooner('square', 2)).toBe(false);
    expect(times.isCheaperPerRow('square', 4)).toBe(false);
    expect(times.rowMs('square')).toBeCloseTo(2.5, 1);
  });

  it('tells decoding in rows of a call, once both are known', () => {
    const times = new CallTimes();
    times.noteDecoding('square', 300);
    expect(times.decodeRows('square')).toBe(0);
    for (let i = 0; i < 2; i++) times.note('square', 2, 40);
    expect(times.decodeRows('square')).toBe(15);
    times.noteDecoding('square', 500);
    expect(times.decodeRows('square')).toBe(17.5);
  });

  it('keeps apart what rows and decodings of each kind take, by lanes or all threads, and knows nothing of a new kind', () => {
    const times = measured([2, 10], [2, 10]);
    for (let i = 0; i < 2; i++) times.note('large', 2, 1_000, { lane: 1 });
    times.noteDecoding('square', 50);
    times.noteDecoding('large', 1_000);
    expect(['square', 'large', 'new'].map((kind) => times.rowMs(kind))).toEqual([5, 500, 0]);
    expect(['square', 'large', 'new'].map((kind) => times.decodeRows(kind))).toEqual([10, 2, 0]);
    expect(times.rowMs()).toBeGreaterThan(5);
  });
});
