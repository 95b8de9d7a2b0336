import { type ModelProgress, ProgressMeter } from './model-progress';

describe(ProgressMeter.name, () => {
  let now: number;
  let reports: ModelProgress[];
  const meter = (totalBytes: number, totalFiles = 2): ProgressMeter =>
    new ProgressMeter(
      'download',
      totalBytes,
      totalFiles,
      (progress) => reports.push(progress),
      () => now,
    );

  beforeEach(() => {
    now = 0;
    reports = [];
  });

  it('adds up files, and computes the speed and the time left from the last ten seconds', () => {
    const progress = meter(100_000);
    for (now = 1000; now <= 20_000; now += 1000) progress.set('a', now < 10_000 ? now / 10 : now);
    expect(reports.at(-1)).toEqual({
      phase: 'download',
      file: 'a',
      doneBytes: 20_000,
      totalBytes: 100_000,
      doneFiles: 0,
      totalFiles: 2,
      bytesPerSecond: 1000,
      secondsLeft: 80,
    });
  });

  it('does not count bytes that were already there as speed', () => {
    const progress = meter(1000);
    now = 1000;
    progress.set('a', 900, true);
    expect(reports[0]).toMatchObject({ doneBytes: 900, bytesPerSecond: 0 });
    expect(reports[0].secondsLeft).toBeUndefined();
  });

  it('reports no speed during the first half second', () => {
    const progress = meter(1000);
    now = 499;
    progress.set('a', 100);
    now = 600;
    progress.set('a', 120);
    expect(reports.map(({ bytesPerSecond }) => bytesPerSecond)).toEqual([0, 200]);
  });

  it('goes back when a file starts over', () => {
    const progress = meter(1000);
    now = 1000;
    progress.set('a', 600);
    now = 2000;
    progress.set('a', 0);
    expect(reports.map(({ doneBytes }) => doneBytes)).toEqual([600, 0]);
  });

  it('reports at most ten times a second, and always at the end', () => {
    const progress = meter(1000, 1);
    for (now = 1; now <= 1000; now++) progress.set('a', now);
    progress.finish('a');
    expect(reports.length).toBeLessThanOrEqual(11);
    expect(reports.at(-1)).toMatchObject({ doneFiles: 1, doneBytes: 1000 });
  });
});
