import type { Config } from '@app/config';
import type { TrainingTask } from '@app/domain';
import type { ClaimingParts } from '../drawing/claiming-loop';
import type { DrawingLock } from '../drawing/drawing-lock';
import { TrainingLoop } from './training-loop';

describe(TrainingLoop.name, () => {
  it('begins the next training while the pictures of one are slow to come, and none beside one that trains', async () => {
    const queue = ['slow', 'quick', 'next'].map((id) => ({ id, ownerId: id }) as TrainingTask);
    const claimed: string[] = [];
    let begun = (): void => undefined;
    const trains = new Promise<void>((resolve) => (begun = resolve));
    const service = {
      run: async ({ id }: TrainingTask, lock: DrawingLock, shutdown: AbortSignal) => {
        claimed.push(id);
        const over = new Promise((resolve) => shutdown.addEventListener('abort', resolve));
        if (id === 'slow') return void (await over);
        const leave = await lock.begin(true, shutdown);
        begun();
        await over;
        leave();
      },
    };
    const parts = {
      clock: { agrees: true, contact: { heldMs: 0 } },
      wakeUps: { listen: () => undefined },
      storage: { isWritable: async () => true },
      // A training needs no signature.
      credentials: { mayDraw: async () => false },
      logger: { warnSparingly: () => undefined, error: () => undefined },
    };
    const loop = new TrainingLoop(
      parts as unknown as ClaimingParts,
      ...([
        { devices: ['cpu'] },
        { trainableOn: () => [] },
        { hasTaskForOtherModels: async () => false },
        { claim: async () => queue.shift() },
        service,
      ] as unknown as [never, never, never, never, never]),
      { workerKinds: ['training'] } as unknown as Config,
    );
    loop.onApplicationBootstrap();
    await trains;
    await loop.beforeApplicationShutdown();
    expect(claimed).toEqual(['slow', 'quick']);
  }, 60_000);
});
