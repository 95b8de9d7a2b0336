import type { Engine } from '../engine-client/engine';
import { TaskAbortedError } from '../engine-client/task-errors';
import { type Loan, Places } from './places';
import { WaitingForPlace } from './waiting-for-place';

const never = new AbortController().signal;

describe(WaitingForPlace.name, () => {
  const engine = { device: 'cpu', loadedKeys: new Set<string>() } as unknown as Engine;
  let places: Places;
  let looks: number;
  let waiting: WaitingForPlace;

  beforeEach(() => {
    places = new Places({ all: [engine], placesOfEngine: 3 });
    looks = 0;
    waiting = new WaitingForPlace(places, () => looks++);
  });

  const borrow = (): Loan<Engine> => places.borrow()!;

  it('holds no place while pictures are read, and gives the next one to whoever has read them first', async () => {
    const [slow, quick] = [waiting.enter('slow'), waiting.enter('quick')];
    expect(places.full).toEqual([]);
    const isReady = quick.ready(never);
    expect(looks).toBe(1);
    expect(waiting.giveTo(borrow())).toBe(true);
    await isReady;
    expect(quick.engineFor({ key: 'model' })).toBe(engine);
    const other = borrow();
    expect(waiting.giveTo(other)).toBe(false);
    slow.leave();
    quick.leave();
    other.giveBack();
    expect([borrow(), borrow(), borrow()].every((loan) => loan)).toBe(true);
  });

  it('claims no more for an owner who has four without a place', () => {
    const loans = Array.from({ length: 4 }, () => waiting.enter('many'));
    waiting.enter('few');
    expect(waiting.full).toEqual(['many']);
    loans[0].leave();
    expect(waiting.full).toEqual([]);
  });

  it('gives up a task that is canceled, and all of them at the end', async () => {
    const cancel = new AbortController();
    const canceled = waiting.enter('one').ready(cancel.signal);
    const other = waiting.enter('other').ready(never);
    cancel.abort();
    await expect(canceled).rejects.toThrow(TaskAbortedError);
    waiting.stop();
    await expect(other).rejects.toThrow(TaskAbortedError);
    expect(waiting.giveTo(borrow())).toBe(false);
  });
});
