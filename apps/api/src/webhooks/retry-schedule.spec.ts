import { maxAttempts, nextWaitMs, retryAfterMs } from './retry-schedule';

const hour = 3_600_000;

describe(nextWaitMs.name, () => {
  it('spreads ten tries over about three days', () => {
    const waits = Array.from({ length: maxAttempts - 1 }, (_, index) => nextWaitMs(index + 1, 0, 0.5) ?? Number.NaN);
    const total = waits.reduce((sum, wait) => sum + wait, 0);
    expect(maxAttempts).toBe(10);
    expect(total).toBeGreaterThan(70 * hour);
    expect(total).toBeLessThan(74 * hour);
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
  });

  it('gives up after the last', () => {
    expect(nextWaitMs(maxAttempts)).toBeUndefined();
  });

  it('moves a wait by a tenth either way', () => {
    expect(nextWaitMs(1, 0, 0)).toBe(4500);
    expect(nextWaitMs(1, 0, 1)).toBe(5500);
  });

  it('waits as long as the receiver asks, at most a day', () => {
    expect(nextWaitMs(1, 90_000, 0.5)).toBe(90_000);
    expect(nextWaitMs(1, 72 * hour, 0.5)).toBe(24 * hour);
    expect(nextWaitMs(9, 1000, 0.5)).toBe(45 * hour);
  });
});

describe(retryAfterMs.name, () => {
  const now = Date.parse('2026-11-20T09:00:00Z');

  it('reads seconds and dates', () => {
    expect(retryAfterMs('120', now)).toBe(120_000);
    expect(retryAfterMs('Fri, 20 Nov 2026 09:01:00 GMT', now)).toBe(60_000);
  });

  it('is nothing for what is absent, past or unreadable', () => {
    for (const header of [undefined, '', 'soon', '-5', 'Fri, 20 Nov 2020 09:01:00 GMT'])
      expect(retryAfterMs(header, now)).toBe(0);
  });
});
