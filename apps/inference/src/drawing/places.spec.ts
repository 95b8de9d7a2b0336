import type { Device } from '@app/diffusion';
import { TaskAbortedError } from '../engine-client/task-errors';
import { type PlacedEngine, type PlaceRequest, Places } from './places';

class FakeEngine implements PlacedEngine {
  readonly loadedKeys = new Set<string>();

  constructor(readonly device: Device) {}
}

const placesOf = (count: number) => new Places({ all: [new FakeEngine('cpu')], placesOfEngine: count });

describe('places of owners', () => {
  /** Takes places for an owner until it may have no other. @returns how many that were */
  function fill(places: ReturnType<typeof placesOf>, owner: string): number {
    for (let taken = 0; ; taken++) {
      if (places.full.includes(owner)) return taken;
      places.take(owner);
    }
  }

  it('gives two thirds of the places to one owner', () => {
    expect(fill(placesOf(12), 'greedy')).toBe(8);
  });

  it('keeps a place for who has none, although several owners have as many tasks as they may', () => {
    const places = placesOf(12);
    expect(['one', 'two', 'three'].map((owner) => fill(places, owner))).toEqual([8, 2, 1]);
    expect(places.full).not.toContain('a newcomer');
  });

  it('gives an owner another place when enough of them are free again', () => {
    const places = placesOf(12);
    const giveBack = Array.from({ length: 8 }, () => places.take('greedy'));
    const ends = places.take('modest');
    giveBack[0]();
    expect(places.full).toContain('greedy');
    ends();
    expect(places.full).toEqual([]);
  });

  it('gives the only place to who comes first', () => {
    const places = placesOf(1);
    expect(places.full).toEqual([]);
    places.take('first');
    expect(places.full).toEqual(['first']);
  });

  it('draws a suspected task when all others are drawn, and claims nothing until it has ended', async () => {
    const places = placesOf(4);
    const { signal } = new AbortController();
    const drawn = [await places.begin(false, signal), await places.begin(false, signal)];
    let end: (() => void) | undefined;
    const suspect = places.begin(true, signal).then((ended) => (end = ended));
    expect(places.hasRoom).toBe(false);
    drawn[0]();
    drawn[0]();
    await Promise.resolve();
    expect(end).toBeUndefined();
    drawn[1]();
    await suspect;
    expect(places.hasRoom).toBe(false);
    end!();
    expect(places.hasRoom).toBe(true);
  });

  it('claims again when a suspected task is given up while it waits', async () => {
    const places = placesOf(4);
    await places.begin(false, new AbortController().signal);
    const aborter = new AbortController();
    const suspect = places.begin(true, aborter.signal);
    aborter.abort();
    await expect(suspect).rejects.toThrow('given up');
    expect(places.hasRoom).toBe(true);
  });
});

describe('places of engines', () => {
  const of = (...devices: Device[]) => {
    const engines = devices.map((device) => new FakeEngine(device));
    return { engines, places: new Places({ all: engines, placesOfEngine: 4 }) };
  };
  const a = { key: 'a' };
  const b = { key: 'b' };
  const cuda = { key: 'c', refusedOn: ['cpu'] };
  const take = (places: Places<FakeEngine>, request: PlaceRequest) => {
    const loan = places.borrow()!;
    return { loan, device: loan.engineFor(request).device };
  };

  it('lends as many places as there are, and lends again what is given back', () => {
    const { places } = of('cuda:0', 'cuda:1');
    expect(places.count).toBe(8);
    const loans = Array.from({ length: 8 }, () => places.borrow());
    for (const loan of loans) expect(loan).toBeDefined();
    expect(places.borrow()).toBeUndefined();
    loans[0]?.giveBack();
    loans[0]?.giveBack();
    expect(places.borrow()).toBeDefined();
    expect(places.borrow()).toBeUndefined();
    expect(loans[1]!.engineFor(a).device).toMatch(/^cuda:/);
    loans[1]?.giveBack();
    expect(places.borrow()).toBeDefined();
  });

  it('gets back the place that the first call has taken, although a later one names another model', () => {
    const { places } = of('cuda:0');
    const { loan } = take(places, a);
    expect(loan.engineFor(b).device).toBe('cuda:0');
    expect([...places.loadedKeys]).toEqual(['a']);
    loan.giveBack();
    expect([...places.loadedKeys]).toEqual([]);
    const loans = Array.from({ length: 4 }, () => places.borrow());
    for (const each of loans) expect(each).toBeDefined();
  });

  it('chooses the engine that has the model loaded, else the one with most places free', () => {
    const { engines, places } = of('cuda:0', 'cuda:1', 'cuda:2');
    engines[1].loadedKeys.add('b');
    expect(take(places, b).device).toBe('cuda:1');
    expect(take(places, a).device).toBe('cuda:0');
    expect(take(places, { ...a, key: 'x' }).device).toBe('cuda:2');
    // It is about to be loaded where the first one is drawn.
    expect(take(places, a).device).toBe('cuda:0');
  });

  it('lets an idle engine load a model too where another has half its places taken, and chooses one with a place', () => {
    const { engines, places } = of('cuda:0', 'cuda:1');
    engines[0].loadedKeys.add('a');
    const devices: Device[] = [];
    for (let n = 0; n < 8; n++) devices.push(take(places, a).device);
    expect(devices.slice(0, 3)).toEqual(['cuda:0', 'cuda:0', 'cuda:1']);
    expect(devices.filter((device) => device === 'cuda:0')).toHaveLength(4);
  });

  it('leaves to the processor only what no GPU has a place for', () => {
    const { engines, places } = of('cpu', 'cuda:0');
    engines[0].loadedKeys.add('a');
    const devices: Device[] = [];
    for (let n = 0; n < 5; n++) devices.push(take(places, a).device);
    expect(devices).toEqual(['cuda:0', 'cuda:0', 'cuda:0', 'cuda:0', 'cpu']);
  });

  it('gives what the processor has refused to a GPU only, and gives it up if none has a place', () => {
    const { places } = of('cpu', 'cuda:0');
    const taken = Array.from({ length: 4 }, () => take(places, cuda));
    expect(taken.map(({ device }) => device)).toEqual(['cuda:0', 'cuda:0', 'cuda:0', 'cuda:0']);
    expect(places.freeDevices).toEqual(['cpu']);
    const loan = places.borrow()!;
    expect(() => loan.engineFor(cuda)).toThrow(TaskAbortedError);
    taken[2].loan.giveBack();
    expect(loan.engineFor(cuda).device).toBe('cuda:0');
  });

  it('passes over a device that has refused the model, while another may draw it', () => {
    const { engines, places } = of('cpu', 'cuda:0');
    engines[1].loadedKeys.add('a');
    expect(take(places, { ...a, refusedOn: ['cuda:0'] }).device).toBe('cpu');
    expect(take(places, { ...a, refusedOn: ['cuda:0', 'cpu'] }).device).toBe('cuda:0');
  });

  it('knows what is loaded where a place is free', () => {
    const { engines, places } = of('cuda:0', 'cuda:1');
    engines[0].loadedKeys.add('a');
    engines[1].loadedKeys.add('b');
    expect(places.loadedKeys).toEqual(new Set(['a', 'b']));
    for (let n = 0; n < 2; n++) take(places, a);
    take(places, b);
    for (let n = 0; n < 2; n++) take(places, a);
    expect(places.freeDevices).toEqual(['cuda:1']);
    expect(places.loadedKeys).toEqual(new Set(['b']));
  });
});
