import { seedOf } from '@app/domain';
import { pipelineRequest } from './running-task';
import { smallRequest } from '../../../../test/support/small-request';

describe(pipelineRequest.name, () => {
  it.each([1, 7, 2 ** 32 - 2])('has the seeds that the record says, from %d on', (seed) => {
    const { seeds } = pipelineRequest({ ...smallRequest, seed, numImages: 4 }, []);
    expect(seeds).toEqual([0, 1, 2, 3].map((index) => seedOf(seed, index)));
  });
});
