import { hasCallsInPowersOfTwo, powerOfTwoFrom, powerOfTwoUpTo } from './rows-of-call';

describe(hasCallsInPowersOfTwo.name, () => {
  it('is so on each GPU, and not on the processor', () => {
    expect((['cpu', 'webgpu', 'cuda:1'] as const).map(hasCallsInPowersOfTwo)).toEqual([false, true, true]);
  });
});

describe(powerOfTwoFrom.name, () => {
  it('is the next power of two upwards, as the one below is downwards', () => {
    expect([1, 2, 3, 5, 16, 33].map(powerOfTwoFrom)).toEqual([1, 2, 4, 8, 16, 64]);
    expect([1, 2, 3, 5, 16, 33].map(powerOfTwoUpTo)).toEqual([1, 2, 2, 4, 16, 32]);
  });
});
