import type { Trajectory } from '@app/diffusion';
import { smallRequest } from '../../../../test/support/small-request';
import { CallTimes } from './call-times';
import type { LoadedModel } from './models';
import { decodingOf, type EngineTask, pipelineRequest, RunningTask } from './running-task';

describe(pipelineRequest.name, () => {
  it.each([
    [0, [0, 1, 2]],
    [7, [7, 8, 9]],
    [4_294_967_294, [4_294_967_294, 4_294_967_295, 0]],
  ])('counts the seeds of pictures from %i on, and begins again after the largest', (seed, expected) => {
    expect(pipelineRequest({ ...smallRequest, seed, numImages: 3 }, []).seeds).toEqual(expected);
  });
});

describe(RunningTask.name, () => {
  it('still needs the time of looking at each picture that is not decoded, if somebody looks at them', () => {
    const times = new CallTimes('cpu');
    const about = { shape: [64, 64], prompt: { lengths: [77] }, references: [], adapters: new Map() };
    const drawn = { ...about, rows: 1, remainingSteps: 0 } as unknown as Trajectory;
    const model = { key: 'model', instance: { bytesOf: () => ({ row: 1, decoding: 1 }) } } as unknown as LoadedModel;
    const running = (task: object) =>
      new RunningTask({
        ...{ task: task as EngineTask, model, times },
        controls: [],
        trajectories: [drawn, drawn],
        startedAt: 0,
      });
    const looked = running({ safety: { key: 'safety' } });
    times.recordWork(decodingOf(looked.callKey), 30);
    times.recordWork('safety', 5);
    expect([running({}).msLeft, looked.msLeft]).toEqual([60, 70]);
  });
});
