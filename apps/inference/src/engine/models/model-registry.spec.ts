import { setImmediate } from 'node:timers/promises';
import { cures, ModelFolderError } from '@app/diffusion';
import type { ModelLoaded } from '../engine-protocol';
import { ModelRegistry, type ModelSpec } from './model-registry';

class FakeModel {
  released = false;

  async release(): Promise<void> {
    this.released = true;
  }
}

describe(ModelRegistry.name, () => {
  const reports: ModelLoaded[] = [];
  const released: string[] = [];
  const [inUse, awaited] = [new Set<string>(), new Set<string>()];
  let registry: ModelRegistry;

  beforeEach(() => {
    reports.length = released.length = 0;
    inUse.clear();
    awaited.clear();
    registry = new ModelRegistry(
      100,
      { inUse: () => inUse, awaited: () => awaited },
      (report) => reports.push(report),
      (key) => released.push(key),
    );
  });

  const get = (key: string, bytes: number, rest: Partial<ModelSpec<FakeModel>> = {}): Promise<FakeModel> =>
    registry.get(key, async () => ({ bytes, load: async () => new FakeModel(), ...rest }));

  it('loads a model once', async () => {
    const first = await get('a', 10);
    expect(await get('a', 10)).toBe(first);
    expect(reports).toEqual([expect.objectContaining({ key: 'a', modelBytes: 10, totalBytes: 10 })]);
  });

  it('does not load again what was refused for its files, and loads again what failed otherwise', async () => {
    const errors = [new Error('CUDA failure 2'), new ModelFolderError('/models/a', 'is cut short', cures.installAgain)];
    const load = jest.fn(async (): Promise<FakeModel> => Promise.reject(errors[load.mock.calls.length - 1]));
    const failing = () => registry.get('a', async () => ({ bytes: 1, load }));
    await expect(failing()).rejects.toThrow('CUDA failure 2');
    for (let i = 0; i < 3; i++) await expect(failing()).rejects.toThrow('/models/a is cut short.');
    expect(load).toHaveBeenCalledTimes(2);
  });

  it('releases the least recently used models until the new one fits', async () => {
    const [a, b, c] = [await get('a', 40), await get('b', 40), await get('c', 20)];
    await get('a', 40);
    await get('d', 60);
    expect([a.released, b.released, c.released]).toEqual([false, true, true]);
    expect(reports.at(-1)).toMatchObject({ key: 'd', totalBytes: 100 });
    expect(released).toEqual(['b', 'c']);
  });

  it('releases first what a later one of its series has replaced, and last what something waits for', async () => {
    const series = 'one';
    await get('awaited', 20);
    await get('idle', 20);
    await get('scale 1', 20, { series });
    await get('scale 2', 20, { series });
    await get('other', 20, { series: 'two' });
    awaited.add('awaited');
    await get('a', 40);
    expect(released).toEqual(['scale 1', 'idle']);
    await get('b', 60);
    expect(released).toEqual(['scale 1', 'idle', 'scale 2', 'other', 'a']);
    await get('c', 40);
    expect(released.slice(5)).toEqual(['b']);
  });

  it('releases nothing else for one of a series than the one before it', async () => {
    await get('idle', 50);
    for (const scale of [1, 2, 3]) await get(`scale ${scale}`, 50, { series: 'one' });
    expect(released).toEqual(['scale 1', 'scale 2']);
  });

  it('takes the one of a series that was used last for the one that counts', async () => {
    await get('scale 1', 40, { series: 'one' });
    await get('scale 2', 40, { series: 'one' });
    await get('scale 1', 40);
    await get('a', 60);
    expect(released).toEqual(['scale 2']);
  });

  describe('with parts in common', () => {
    const vaeDecoder = { id: 'decoder', bytes: 30 };
    const tuned = { bytes: 40, parts: { vaeDecoder } };

    it('counts each of them once, with what its calls have left, until the last model that has it is released', async () => {
      await get('base', 40, tuned);
      inUse.add('base').add('tuned');
      expect([registry.hasRoomToLoad(tuned, { vaeDecoder: 50 }), registry.hasRoomToLoad(tuned, { unet: 51 })]).toEqual([
        true,
        false,
      ]);
      await registry.reserve('base', { vaeDecoder: 20 });
      await get('tuned', 40, tuned);
      expect(registry.bytes).toBe(10 + 10 + 30 + 20);
      await registry.reserve('tuned', { vaeDecoder: 20 });
      expect(registry.bytes).toBe(70);
      inUse.delete('base');
      await get('large', 50);
      expect([released, registry.bytes]).toEqual([['base'], 10 + 30 + 20 + 50]);
    });

    it('goes on counting a part that a model has in common with one that is released for it', async () => {
      await get('idle', 60);
      await get('base', 40, tuned);
      await get('a', 50);
      expect(released).toEqual(['idle']);
      await get('tuned', 50, { parts: tuned.parts });
      expect([released, registry.bytes]).toEqual([['idle', 'base'], 50 + 50]);
    });
  });

  it('keeps a model that is larger than the budget, alone', async () => {
    const small = await get('small', 10);
    const large = await get('large', 1000);
    expect([small.released, large.released]).toEqual([true, false]);
    expect(await get('large', 1000)).toBe(large);
  });

  it('releases no model that is in use, however little room there is', async () => {
    const used = await get('used', 60);
    const idle = await get('idle', 40);
    inUse.add('used');
    expect(registry.drawingBytes).toBe(40);
    await get('large', 1000);
    expect([used.released, idle.released]).toEqual([false, true]);
  });

  it('releases none that comes into use while another one is released', async () => {
    const release = async () => void inUse.add('b');
    await registry.get('a', async () => ({ bytes: 10, load: async () => ({ release }) }));
    await get('b', 10);
    expect(await registry.releaseIdle()).toBe(true);
    expect(released).toEqual(['a']);
  });

  it('makes room for drawing by releasing what is idle, and no more than that takes', async () => {
    const [a, b, c] = [await get('a', 30), await get('b', 30), await get('c', 30)];
    inUse.add('c');
    await registry.reserve('c', { unet: 30, vaeDecoder: 0 });
    expect(released).toEqual(['a']);
    expect([await registry.releaseIdle(), await registry.releaseIdle()]).toEqual([true, false]);
    expect(released).toEqual(['a', 'b']);
    expect([a.released, b.released, c.released]).toEqual([true, true, false]);
  });

  it('counts what calls have taken until the model is released, idle or not', async () => {
    await get('a', 10);
    await registry.reserve('a', { unet: 20, vaeDecoder: 30 });
    await registry.reserve('a', { unet: 20, vaeDecoder: 5 });
    expect(registry.bytes).toBe(60);
    await get('b', 40);
    expect(released).toEqual([]);
    inUse.add('b');
    await registry.reserve('b', { unet: 1, vaeDecoder: 0 });
    expect([released, registry.bytes]).toEqual([['a'], 41]);
  });

  it('counts what text encoders and upscalers have taken beside the other parts', async () => {
    await get('a', 10);
    await get('idle', 10);
    inUse.add('a');
    await registry.reserve('a', { textEncoder: 20 });
    await registry.reserve('a', { unet: 30, vaeDecoder: 10 });
    await registry.reserve('a', { textEncoder: 15 });
    expect([registry.bytes, released]).toEqual([80, []]);
    await registry.reserve('a', { upscaler: 25 });
    expect([registry.bytes, released]).toEqual([95, ['idle']]);
    expect(registry.callBytes('a', 10)).toBe(30);
  });

  it('lets a call take what an earlier one took, or what is left beside models in use and a decoding', async () => {
    await get('a', 10);
    await get('b', 20);
    inUse.add('a').add('b');
    expect(registry.callBytes('a', 30)).toBe(40);
    await registry.reserve('a', { unet: 35, vaeDecoder: 30 });
    expect(registry.drawingBytes).toBe(5);
    expect([registry.callBytes('a', 30), registry.callBytes('b', 0)]).toEqual([35, 5]);
  });

  it('reserves for one lane what each other takes at the same time, beside what calls of all threads have left', async () => {
    await get('a', 10);
    inUse.add('a');
    expect(registry.callBytes('a', 15, 0)).toBe(30);
    const hasRoom = (unet: number, vaeDecoder: number) => registry.hasRoomInLanes('a', { unet, vaeDecoder });
    expect([hasRoom(30, 15), hasRoom(31, 15)]).toEqual([true, false]);
    await registry.reserve('a', { unet: 20, vaeDecoder: 15 }, 0);
    await registry.reserve('a', { unet: 20, vaeDecoder: 15 }, 1);
    expect(registry.bytes).toBe(80);
    expect(registry.callBytes('a', 15)).toBe(5);
    await registry.reserve('a', { unet: 3, vaeDecoder: 15 });
    expect(registry.bytes).toBe(98);
    expect(registry.callBytes('a', 15, 1)).toBe(20);
    // What lanes have drawn before takes nothing more.
    expect([hasRoom(20, 15), hasRoom(5, 16)]).toEqual([true, false]);
  });

  it('lets who needs nothing more go on while a model is loaded', async () => {
    await get('a', 10);
    await registry.reserve('a', { unet: 20, vaeDecoder: 15 }, 0);
    let finish!: (model: FakeModel) => void;
    const loading = new Promise<FakeModel>((resolve) => (finish = resolve));
    const loaded = registry.get('b', async () => ({ bytes: 10, load: () => loading }));
    await registry.reserve('a', { unet: 20, vaeDecoder: 15 }, 1);
    finish(new FakeModel());
    await loaded;
  });

  describe('while a model is loaded', () => {
    let load: () => Promise<unknown>;

    beforeEach(async () => {
      await get('a', 10);
      await get('idle', 20);
      inUse.add('a');
      let finish!: (model: FakeModel) => void;
      const loading = new Promise<FakeModel>((resolve) => (finish = resolve));
      let begins!: () => void;
      const begun = new Promise<void>((resolve) => (begins = resolve));
      const loaded = registry.get('b', async () => ({ bytes: 30, load: () => (begins(), loading) }));
      await begun;
      load = () => (finish(new FakeModel()), loaded);
    });

    it('lets a call go on that needs no more than is free', async () => {
      await registry.reserve('a', { unet: 30, vaeDecoder: 10 });
      await load();
      expect([registry.bytes, released]).toEqual([100, []]);
    });

    it('lets a call wait for which idle models have to make room, and lets calls take no more than is free', async () => {
      expect([registry.drawingBytes, registry.callBytes('a', 10)]).toEqual([60, 30]);
      const reserved = registry.reserve('a', { unet: 31, vaeDecoder: 10 });
      expect(released).toEqual([]);
      await load();
      await reserved;
      expect([registry.bytes, released]).toEqual([10 + 30 + 31 + 10, ['idle']]);
    });
  });

  it('gives room that is made for a call to no other meanwhile', async () => {
    await get('a', 10);
    let endRelease!: () => void;
    const release = (): Promise<void> => new Promise((resolve) => (endRelease = resolve));
    await registry.get('idle', async () => ({ bytes: 90, load: async () => ({ release }) }));
    inUse.add('a');
    const large = registry.reserve('a', { unet: 90 });
    await setImmediate();
    const small = registry.reserve('a', { textEncoder: 5 });
    expect([registry.bytes, registry.callBytes('a', 0)]).toEqual([10, 0]);
    endRelease();
    await Promise.all([large, small]);
    expect(registry.bytes).toBe(105);
  });

  it('does not keep what failed to load', async () => {
    const load = (): Promise<FakeModel> => Promise.reject(new Error('cut short'));
    await expect(registry.get('a', async () => ({ bytes: 10, load }))).rejects.toThrow('cut short');
    expect(registry.bytes).toBe(0);
    expect((await get('a', 10)).released).toBe(false);
  });

  it('releases everything when it is cleared', async () => {
    const models = [await get('a', 10), await get('b', 10)];
    await registry.clear();
    expect(models.map(({ released }) => released)).toEqual([true, true]);
    expect(registry.bytes).toBe(0);
  });

  it('says whether a loaded model has room for its calls beside those in use', async () => {
    const hasRoom = (key: string, unet: number) => registry.hasRoomFor(key, () => ({ unet, vaeDecoder: 10 }));
    await get('used', 50);
    await get('idle', 20);
    expect(hasRoom('absent', 0)).toBeUndefined();
    inUse.add('used');
    expect([hasRoom('idle', 20), hasRoom('idle', 21)]).toEqual([true, false]);
    expect([hasRoom('used', 40), hasRoom('used', 41)]).toEqual([true, false]);
    inUse.add('idle');
    await registry.reserve('idle', { unet: 10, vaeDecoder: 10 });
    expect([hasRoom('idle', 10), hasRoom('idle', 11)]).toEqual([true, false]);
    // What its arena holds it may have again, even where others take more than there is.
    await registry.reserve('used', { unet: 90, vaeDecoder: 10 });
    expect([hasRoom('idle', 10), hasRoom('idle', 11)]).toEqual([true, false]);
  });
});
