import type { Device } from '@app/diffusion';
import { TaskAbortedError } from '../engine-client/task-errors';
import { EngineSlots, type SlotRequest, type SlottedEngine } from './engine-slots';

class FakeEngine implements SlottedEngine {
  readonly loadedKeys = new Set<string>();

  constructor(readonly device: Device) {}
}

describe(EngineSlots.name, () => {
  const of = (...devices: Device[]) => {
    const engines = devices.map((device) => new FakeEngine(device));
    return { engines, slots: new EngineSlots({ all: engines, slotsOfEngine: 4 }) };
  };
  const a = { key: 'a' };
  const b = { key: 'b' };
  const cuda = { key: 'c', refusedOn: ['cpu'] };
  const take = (slots: EngineSlots<FakeEngine>, request: SlotRequest) => {
    const slot = slots.take()!;
    return { slot, device: slot.engineFor(request).device };
  };

  it('gives as many slots as there are, and gives again what is given back', () => {
    const { slots } = of('cuda:0', 'cuda:1');
    expect(slots.count).toBe(8);
    const taken = Array.from({ length: 8 }, () => slots.take());
    for (const slot of taken) expect(slot).toBeDefined();
    expect(slots.take()).toBeUndefined();
    taken[0]?.giveBack();
    taken[0]?.giveBack();
    expect(slots.take()).toBeDefined();
    expect(slots.take()).toBeUndefined();
    expect(taken[1]!.engineFor(a).device).toMatch(/^cuda:/);
    taken[1]?.giveBack();
    expect(slots.take()).toBeDefined();
  });

  it('gets back the slot that the first call has taken, although a later one names another model', () => {
    const { slots } = of('cuda:0');
    const { slot } = take(slots, a);
    expect(slot.engineFor(b).device).toBe('cuda:0');
    expect([...slots.loadedKeys]).toEqual(['a']);
    slot.giveBack();
    expect([...slots.loadedKeys]).toEqual([]);
    const taken = Array.from({ length: 4 }, () => slots.take());
    for (const each of taken) expect(each).toBeDefined();
  });

  it('chooses the engine that has the model loaded, else the one with most slots free', () => {
    const { engines, slots } = of('cuda:0', 'cuda:1', 'cuda:2');
    engines[1].loadedKeys.add('b');
    expect(take(slots, b).device).toBe('cuda:1');
    expect(take(slots, a).device).toBe('cuda:0');
    expect(take(slots, { ...a, key: 'x' }).device).toBe('cuda:2');
    // It is about to be loaded where the first one is drawn.
    expect(take(slots, a).device).toBe('cuda:0');
  });

  it('lets an idle engine load a model too where another has half its slots taken, and chooses one with a slot', () => {
    const { engines, slots } = of('cuda:0', 'cuda:1');
    engines[0].loadedKeys.add('a');
    const devices: Device[] = [];
    for (let n = 0; n < 8; n++) devices.push(take(slots, a).device);
    expect(devices.slice(0, 3)).toEqual(['cuda:0', 'cuda:0', 'cuda:1']);
    expect(devices.filter((device) => device === 'cuda:0')).toHaveLength(4);
  });

  it('leaves to the processor only what no GPU has a slot for', () => {
    const { engines, slots } = of('cpu', 'cuda:0');
    engines[0].loadedKeys.add('a');
    const devices: Device[] = [];
    for (let n = 0; n < 5; n++) devices.push(take(slots, a).device);
    expect(devices).toEqual(['cuda:0', 'cuda:0', 'cuda:0', 'cuda:0', 'cpu']);
  });

  it('gives what the processor has refused to a GPU only, and gives it up if none has a slot', () => {
    const { slots } = of('cpu', 'cuda:0');
    const taken = Array.from({ length: 4 }, () => take(slots, cuda));
    expect(taken.map(({ device }) => device)).toEqual(['cuda:0', 'cuda:0', 'cuda:0', 'cuda:0']);
    expect(slots.freeDevices).toEqual(['cpu']);
    const slot = slots.take()!;
    expect(() => slot.engineFor(cuda)).toThrow(TaskAbortedError);
    taken[2].slot.giveBack();
    expect(slot.engineFor(cuda).device).toBe('cuda:0');
  });

  it('passes over a device that has refused the model, while another may draw it', () => {
    const { engines, slots } = of('cpu', 'cuda:0');
    engines[1].loadedKeys.add('a');
    expect(take(slots, { ...a, refusedOn: ['cuda:0'] }).device).toBe('cpu');
    expect(take(slots, { ...a, refusedOn: ['cuda:0', 'cpu'] }).device).toBe('cuda:0');
  });

  it('knows what is loaded where a slot is free', () => {
    const { engines, slots } = of('cuda:0', 'cuda:1');
    engines[0].loadedKeys.add('a');
    engines[1].loadedKeys.add('b');
    expect(slots.loadedKeys).toEqual(new Set(['a', 'b']));
    for (let n = 0; n < 2; n++) take(slots, a);
    take(slots, b);
    for (let n = 0; n < 2; n++) take(slots, a);
    expect(slots.freeDevices).toEqual(['cuda:1']);
    expect(slots.loadedKeys).toEqual(new Set(['b']));
  });
});
