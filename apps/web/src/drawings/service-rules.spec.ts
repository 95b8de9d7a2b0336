import * as limits from '../../../../libs/domain/src/common/limits';
import * as seeds from '../../../../libs/domain/src/common/seed';
import { bounds, largestSeed, promptLength, seedOf, serviceDefaults } from './service-rules';

describe("the page's copy of the service's rules", () => {
  it('has its defaults', () => {
    const { cfg, steps } = limits.defaults;
    expect(serviceDefaults).toEqual({ cfg, steps });
  });

  it('has its bounds', () => {
    const { cfg, steps, numGenerations } = limits.limits;
    expect(bounds).toEqual({ cfg, steps, numGenerations });
  });

  it('has its length of prompts', () => {
    expect(promptLength).toBe(limits.limits.promptLength);
  });

  it('has its largest seed', () => {
    expect(largestSeed).toBe(limits.limits.seed);
  });

  it.each([0, 7, largestSeed - 6, largestSeed])('has its seeds of the pictures from %i on', (seed) => {
    for (let index = 0; index < 8; index++) expect(seedOf({ seed }, index)).toBe(seeds.seedOf(seed, index));
  });
});
