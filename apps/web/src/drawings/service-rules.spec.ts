import * as limits from '../../../../libs/domain/src/common/limits';
import { bounds, largestSeed, lengths, seedOf, serviceDefaults } from './service-rules';

describe("the page's copy of the service's rules", () => {
  it('has its defaults', () => {
    const { cfg, steps, strength } = limits.defaults;
    expect(serviceDefaults).toEqual({ cfg, steps, strength });
  });

  it('has its bounds', () => {
    const { cfg, steps, numGenerations } = limits.limits;
    expect(bounds).toEqual({ cfg, steps, numGenerations });
  });

  it('has its lengths of texts', () => {
    const { promptLength, nameLength, tokenLength } = limits.limits;
    expect(lengths).toEqual({ prompt: promptLength, name: nameLength, token: tokenLength });
  });

  it('has its largest seed', () => {
    expect(largestSeed).toBe(limits.limits.seed);
  });

  it.each([0, 7, largestSeed - 6, largestSeed])('has its seeds of the pictures from %i on', (seed) => {
    for (let index = 0; index < 8; index++) expect(seedOf({ seed }, index)).toBe(limits.seedOf(seed, index));
  });
});
