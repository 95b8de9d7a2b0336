import type { Config } from '@app/config';
import type { TrainingTask } from '@app/domain';
import type { Places } from '../drawing/places';
import { TrainingLoop } from './training-loop';

describe(TrainingLoop.name, () => {
  it('begins the next training while the pictures of one are slow to come, and none beside one that trains', async () => {
    const queue = ['slow', 'quick', 'next'].map((id) => ({ id, ownerId: id }) as TrainingTask);
    const claimed: string[] = [];
    let begun = (): void => undefined;
    const trains = new Promise<void>((resolve) => (begun = resolve));
    const service = {
      run: async ({ id }: TrainingTask, places: Pick<Places, 'begin'>, shutdown: AbortSignal) => {
        claimed.push(id);
        const over = new Promise((resolve) => shutdown.addEventListener('abort', resolve));
        if (id === 'slow') return void (await over);
        const leave = await places.begin(true, shutdown);
        begun();
        await over;
        leave();
      },
    };
    const loop = new TrainingLoop(
      ...([
        { agrees: true, contact: { heldMs: 0 } },
        { listen: () => undefined },
        { devices: ['cpu'] },
        { hasTaskForOtherModels: async () => false },
        { claim: async () => queue.shift() },
        service,
        { drawableOn: () => [] },
        { isOpen: async () => true },
        { warnSparingly: () => undefined, error: () => undefined },
      ] as unknown as [never, never, never, never, never, never, never, never, never]),
      { workerKinds: ['training'] } as unknown as Config,
    );
    loop.onApplicationBootstrap();
    await trains;
    await loop.beforeApplicationShutdown();
    expect(claimed).toEqual(['slow', 'quick']);
  }, 60_000);
});
