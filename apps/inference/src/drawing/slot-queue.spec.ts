import type { Engine } from '../engine-client/engine';
import { TaskAbortedError } from '../engine-client/task-errors';
import { EngineSlots, type Slot } from './engine-slots';
import { OwnerShares } from './owner-shares';
import { SlotQueue } from './slot-queue';

const never = new AbortController().signal;

describe(SlotQueue.name, () => {
  const engine = { device: 'cpu', loadedKeys: new Set<string>() } as unknown as Engine;
  let slots: EngineSlots;
  let shares: OwnerShares;
  let asked: number;
  let queue: SlotQueue;

  beforeEach(() => {
    slots = new EngineSlots({ all: [engine], slotsOfEngine: 3 });
    shares = new OwnerShares(3);
    asked = 0;
    queue = new SlotQueue(shares, () => asked++);
  });

  const free = (): Slot => slots.take()!;

  it('holds no slot while pictures are read, and gives the next one to whoever has read them first', async () => {
    const [slow, quick] = [queue.enter('slow'), queue.enter('quick')];
    expect(shares.full).toEqual([]);
    const isReady = quick.ready(never);
    expect(asked).toBe(1);
    expect(queue.giveTo(free())).toBe(true);
    await isReady;
    expect(quick.engineFor({ key: 'model' })).toBe(engine);
    const other = free();
    expect(queue.giveTo(other)).toBe(false);
    slow.leave();
    quick.leave();
    other.giveBack();
    expect([free(), free(), free()].every((slot) => slot)).toBe(true);
  });

  it('claims no more for an owner who has four without a slot', () => {
    const slotsOfMany = Array.from({ length: 4 }, () => queue.enter('many'));
    queue.enter('few');
    expect(queue.full).toEqual(['many']);
    slotsOfMany[0].leave();
    expect(queue.full).toEqual([]);
  });

  it('gives up a task that is canceled, and all of them at the end', async () => {
    const cancel = new AbortController();
    const canceled = queue.enter('one').ready(cancel.signal);
    const other = queue.enter('other').ready(never);
    cancel.abort();
    await expect(canceled).rejects.toThrow(TaskAbortedError);
    queue.stop();
    await expect(other).rejects.toThrow(TaskAbortedError);
    expect(queue.giveTo(free())).toBe(false);
  });
});
