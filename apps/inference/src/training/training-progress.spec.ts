import type { TrainingTask } from '@app/domain';
import { JsonLogger } from '@app/observability';
import type { Trainings } from '@app/tasks';
import type { ProgressPublisher } from '../drawing/progress-publisher';
import type { TaskHold } from '../drawing/task-hold';
import { TrainingProgress } from './training-progress';
import type { TrainingState } from './training-protocol';
import type { TrainingStore } from './training-store';

describe(TrainingProgress.name, () => {
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
    const trainings = { advanced: async (_: unknown, { step }: { step: number }) => recorded.push(step) > 0 };
    const progress = new TrainingProgress(
      { id: 'one', trainedSeconds: 0 } as TrainingTask,
      'abc',
      { lost: false } as TaskHold,
      trainings as unknown as Trainings,
      store as unknown as TrainingStore,
      { ofTraining: () => () => undefined } as unknown as ProgressPublisher,
      new JsonLogger('test', 'silent'),
    );
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
});
