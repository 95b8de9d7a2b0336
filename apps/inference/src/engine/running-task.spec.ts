import { pipelineRequest } from './running-task';
import { smallRequest } from '../../../../test/support/small-request';

describe(pipelineRequest.name, () => {
  it.each([
    [0, [0, 1, 2]],
    [7, [7, 8, 9]],
    [4_294_967_294, [4_294_967_294, 4_294_967_295, 0]],
  ])('counts the seeds of pictures from %i on, and begins again after the largest', (seed, expected) => {
    expect(pipelineRequest({ ...smallRequest, seed, numImages: 3 }, []).seeds).toEqual(expected);
  });
});
