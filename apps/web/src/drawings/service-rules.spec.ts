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
    const { promptLength: prompt, nameLength: name, tokenLength: token, webhookLength: url } = limits.limits;
    expect(lengths).toEqual({ prompt, name, token, url });
  });

  it('has its largest seed', () => {
    expect(largestSeed).toBe(limits.limits.seed);
  });

  /** As `pipelineRequest` of the worker, whose test has the same numbers. */
  it.each([
    [0, [0, 1, 2]],
    [7, [7, 8, 9]],
    [4_294_967_294, [4_294_967_294, 4_294_967_295, 0]],
  ])('has its seeds of the pictures from %i on', (seed, expected) => {
    expect([0, 1, 2].map((index) => seedOf({ seed }, index))).toEqual(expected);
  });
});
