import type { TrainingTask } from '@app/domain';
import { JsonLogger } from '@app/observability';
import type { TaskHold, Trainings } from '@app/tasks';
import type { ProgressPublisher } from '../drawing/progress-publisher';
import type { RgbImage } from '../engine/engine-protocol';
import { TrainingProgress } from './training-progress';
import type { TrainingState } from './training-protocol';
import type { TrainingStore } from './training-store';

describe(TrainingProgress.name, () => {
  const published: { preview?: RgbImage }[] = [];
  const ofTraining = () => (step: object) => void published.push(step);
  const progressOf = (trainings: object, store: object = {}, showsSamples = async () => true) =>
    new TrainingProgress(
      { id: 'one', trainedSeconds: 0 } as TrainingTask,
      'abc',
      { lost: false } as TaskHold,
      trainings as Trainings,
      store as TrainingStore,
      { publisher: { ofTraining } as unknown as ProgressPublisher, showsSamples },
      new JsonLogger('test', 'silent'),
    );

  it('stores the newest state when the storage is slow, and holds no others meanwhile', async () => {
    const kept: number[] = [];
    let goOn = (): void => undefined;
    const store = {
      keep: async (_: unknown, { step }: TrainingState) => {
        kept.push(step);
        if (kept.length === 1) await new Promise<void>((resolve) => (goOn = resolve));
      },
    };
    const recorded: number[] = [];
    const trainings = { recordProgress: async (_: unknown, { step }: { step: number }) => recorded.push(step) > 0 };
    const progress = progressOf(trainings, store);
    const state = (step: number) => ({
      round: 0,
      step,
      steps: 500,
      loss: 0,
      computeMs: 0,
      checkpoint: new Uint8Array(),
    });
    progress.handle({ type: 'kept', ...state(0) });
    await new Promise(setImmediate);
    for (const step of [50, 100, 150]) {
      progress.handle({ type: 'stepped', ...state(step) });
      progress.handle({ type: 'kept', ...state(step) });
    }
    goOn();
    await progress.finish();
    expect(kept).toEqual([0, 150]);
    expect(recorded.at(-1)).toBe(150);
  });

  it('writes what several readers have spent one after the other, so that the last write is the whole', async () => {
    const written: number[] = [];
    const slowFirst = async (_: unknown, { computeSeconds }: { computeSeconds: number }) => {
      if (computeSeconds === 1) for (let n = 0; n < 5; n++) await new Promise(setImmediate);
      return written.push(computeSeconds) > 0;
    };
    const progress = progressOf({ recordProgress: slowFirst });
    progress.spend(1);
    await new Promise(setImmediate);
    for (const seconds of [2, 3]) progress.spend(seconds);
    await progress.finish();
    expect(written.at(-1)).toBe(6);
    expect(progress.unwritten).toBe(0);
  });

  it.each([
    [true, ['the sample', undefined]],
    [false, [undefined, undefined]],
  ])('shows a sample once where samples are shown, and never where they are not: %s', async (isShown, shown) => {
    published.length = 0;
    const progress = progressOf({ recordProgress: async () => true }, {}, async () => isShown);
    progress.handle({ type: 'sampled', image: 'the sample' as unknown as RgbImage });
    await new Promise(setImmediate);
    for (const step of [1, 2]) progress.handle({ type: 'stepped', round: 0, step, steps: 4, loss: 0, computeMs: 0 });
    expect(published.map(({ preview }) => preview)).toEqual(shown);
  });
});
