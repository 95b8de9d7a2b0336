import { BackOff } from './back-off';

describe(BackOff.name, () => {
  it('doubles the wait with each failure up to the maximum', () => {
    const backOff = new BackOff(100, 1000);
    expect(Array.from({ length: 6 }, () => backOff.next(0))).toEqual([100, 200, 400, 800, 1000, 1000]);
  });

  it('subtracts up to a half at random', () => {
    const backOff = new BackOff(100, 1000);
    expect([backOff.next(1), backOff.next(0.5)]).toEqual([50, 150]);
  });

  it('starts over after a success', () => {
    const backOff = new BackOff(100, 1000);
    backOff.next();
    backOff.next();
    backOff.reset();
    expect(backOff.next(0)).toBe(100);
  });
});
