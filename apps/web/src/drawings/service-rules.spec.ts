import * as limits from '../../../../libs/domain/src/common/limits';
import { bounds, edgeBounds, largestSeed, lengths, seedOf, serviceDefaults, specified } from './service-rules';

describe("the page's copy of the service's rules", () => {
  it('has its defaults', () => {
    const { cfg, steps, strength, outpaintStrength } = limits.defaults;
    expect(serviceDefaults).toEqual({ cfg, steps, strength, outpaintStrength });
  });

  it('has its bounds', () => {
    const { cfg, steps, numGenerations, pictureEdge } = limits.limits;
    expect(bounds).toEqual({ cfg, steps, numGenerations });
    expect(edgeBounds).toEqual(pictureEdge);
  });

  it('has its names of specified sizes', () => {
    // Without the types of that library, which are of Node.js.
    const service = jest.requireActual<{ specified: object }>('../../../../libs/model-store/src/picture-size');
    expect(specified).toEqual(service.specified);
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
