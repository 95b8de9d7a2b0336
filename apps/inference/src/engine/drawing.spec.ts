import { seedOf as seedOfDomain } from '@app/domain';
import { seedOf } from './drawing';

describe(seedOf.name, () => {
  it('is the one that the records have', () => {
    for (const [seed, index] of [
      [1, 0],
      [7, 3],
      [2 ** 32 - 1, 1],
    ])
      expect(seedOf(seed, index)).toBe(seedOfDomain(seed, index));
  });
});
