import type { Device } from '@app/diffusion';
import { DrawingAbortedError } from './engine-errors';
import { EnginePlaces, type Loan, type PlacedEngine, type PlaceRequest } from './engine-places';

class FakeEngine implements PlacedEngine {
  readonly loadedKeys = new Set<string>();

  constructor(readonly device: Device) {}
}

describe(EnginePlaces.name, () => {
  const of = (...devices: Device[]) => {
    const engines = devices.map((device) => new FakeEngine(device));
    return { engines, places: new EnginePlaces(new Map(engines.map((engine) => [engine.device, engine])), 4) };
  };
  const a = { key: 'a' };
  const b = { key: 'b' };
  const cuda = { key: 'c', refusedOn: ['cpu'] };
  const deviceFor = async (loan: Loan<FakeEngine> | undefined, request: PlaceRequest) =>
    (await loan!.engineFor(request)).device;
  const take = async (places: EnginePlaces<FakeEngine>, request: PlaceRequest) => {
    const loan = places.borrow();
    return { loan: loan!, device: await deviceFor(loan, request) };
  };

  it('lends as many places as there are, and lends again what is given back', async () => {
    const { places } = of('cuda:0', 'cuda:1');
    expect(places.count).toBe(8);
    const loans = Array.from({ length: 8 }, () => places.borrow());
    for (const loan of loans) expect(loan).toBeDefined();
    expect(places.borrow()).toBeUndefined();
    loans[0]?.giveBack();
    loans[0]?.giveBack();
    expect(places.borrow()).toBeDefined();
    expect(places.borrow()).toBeUndefined();
    expect(await deviceFor(loans[1], a)).toMatch(/^cuda:/);
    loans[1]?.giveBack();
    expect(places.borrow()).toBeDefined();
  });

  it('gets back the place that the first call has taken, although a later one names another model', async () => {
    const { places } = of('cuda:0');
    const { loan } = await take(places, a);
    expect(await deviceFor(loan, b)).toBe('cuda:0');
    expect([...places.loadedKeys]).toEqual(['a']);
    loan.giveBack();
    expect([...places.loadedKeys]).toEqual([]);
    const loans = Array.from({ length: 4 }, () => places.borrow());
    for (const each of loans) expect(each).toBeDefined();
  });

  it('takes one place for calls that come at the same time', async () => {
    const { places } = of('cuda:0', 'cuda:1');
    const loan = places.borrow()!;
    const [first, second] = await Promise.all([loan.engineFor(a), loan.engineFor(b)]);
    expect(second).toBe(first);
    loan.giveBack();
    const loans = Array.from({ length: 8 }, () => places.borrow());
    for (const each of loans) expect(each).toBeDefined();
    expect(places.borrow()).toBeUndefined();
  });

  it('chooses the engine that has the model loaded, else the one with most places free', async () => {
    const { engines, places } = of('cuda:0', 'cuda:1', 'cuda:2');
    engines[1].loadedKeys.add('b');
    expect((await take(places, b)).device).toBe('cuda:1');
    expect((await take(places, a)).device).toBe('cuda:0');
    expect((await take(places, { ...a, key: 'x' })).device).toBe('cuda:2');
    // It is about to be loaded where the first one is drawn.
    expect((await take(places, a)).device).toBe('cuda:0');
  });

  it('lets an idle engine load a model too where another has half its places taken, and chooses one with a place', async () => {
    const { engines, places } = of('cuda:0', 'cuda:1');
    engines[0].loadedKeys.add('a');
    const devices: Device[] = [];
    for (let n = 0; n < 8; n++) devices.push((await take(places, a)).device);
    expect(devices.slice(0, 3)).toEqual(['cuda:0', 'cuda:0', 'cuda:1']);
    expect(devices.filter((device) => device === 'cuda:0')).toHaveLength(4);
  });

  it('leaves to the processor only what no GPU has a place for', async () => {
    const { engines, places } = of('cpu', 'cuda:0');
    engines[0].loadedKeys.add('a');
    const devices: Device[] = [];
    for (let n = 0; n < 5; n++) devices.push((await take(places, a)).device);
    expect(devices).toEqual(['cuda:0', 'cuda:0', 'cuda:0', 'cuda:0', 'cpu']);
  });

  it('gives what the processor has refused to a GPU only, as soon as one has a place', async () => {
    const { places } = of('cpu', 'cuda:0');
    const taken = [];
    for (let n = 0; n < 4; n++) taken.push(await take(places, cuda));
    expect(taken.map(({ device }) => device)).toEqual(['cuda:0', 'cuda:0', 'cuda:0', 'cuda:0']);
    expect(places.freeDevices).toEqual(['cpu']);
    const chosen: Device[] = [];
    const late = take(places, cuda).then(({ device }) => chosen.push(device));
    // It asks later, and has its place at once.
    expect((await take(places, a)).device).toBe('cpu');
    expect(chosen).toEqual([]);
    taken[2].loan.giveBack();
    await late;
    expect(chosen).toEqual(['cuda:0']);
  });

  it('ends the wait for a place when the task is given up, and lends that place to another', async () => {
    const { places } = of('cpu', 'cuda:0');
    for (let n = 0; n < 4; n++) await take(places, cuda);
    const loan = places.borrow()!;
    const stop = new AbortController();
    const late = loan.engineFor(cuda, stop.signal);
    stop.abort();
    await expect(late).rejects.toThrow(DrawingAbortedError);
    await expect(loan.engineFor(cuda, stop.signal)).rejects.toThrow(DrawingAbortedError);
    loan.giveBack();
    for (let n = 0; n < 4; n++) expect((await take(places, a)).device).toBe('cpu');
    expect(places.borrow()).toBeUndefined();
  });

  it('passes over a device that has refused the model, while another may draw it', async () => {
    const { engines, places } = of('cpu', 'cuda:0');
    engines[1].loadedKeys.add('a');
    expect((await take(places, { ...a, refusedOn: ['cuda:0'] })).device).toBe('cpu');
    expect((await take(places, { ...a, refusedOn: ['cuda:0', 'cpu'] })).device).toBe('cuda:0');
  });

  it('knows what is loaded where a place is free', async () => {
    const { engines, places } = of('cuda:0', 'cuda:1');
    engines[0].loadedKeys.add('a');
    engines[1].loadedKeys.add('b');
    expect(places.loadedKeys).toEqual(new Set(['a', 'b']));
    for (let n = 0; n < 2; n++) await take(places, a);
    await take(places, b);
    for (let n = 0; n < 2; n++) await take(places, a);
    expect(places.freeDevices).toEqual(['cuda:1']);
    expect(places.loadedKeys).toEqual(new Set(['b']));
  });
});
