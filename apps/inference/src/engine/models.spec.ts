import { cures, ModelFolderError } from '@app/diffusion';
import type { CallBytes } from './memory';
import { type Loaded, Models } from './models';

describe(Models.name, () => {
  let inUse: Set<string>;
  let models: Models;
  let told: string[];

  beforeEach(() => {
    inUse = new Set();
    told = [];
    models = new Models(
      () => 100,
      () => inUse,
      (message) => 'key' in message && told.push(`${message.type} ${message.key}`),
    );
  });

  const load = (key: string, bytes: number): Promise<Loaded> =>
    models.load(key, bytes, async () => ({ release: async () => undefined }));

  it('keeps what has room, and releases the least recently used for another', async () => {
    await load('a', 40);
    await load('b', 40);
    models.get('a');
    await load('c', 40);
    expect(told).toEqual(['loaded a', 'loaded b', 'released b', 'loaded c']);
  });

  it('counts a call as use', async () => {
    const a = await load('a', 40);
    await load('b', 40);
    await models.runCalls([[a, {}]], async () => undefined);
    await load('c', 40);
    expect(told).toEqual(['loaded a', 'loaded b', 'released b', 'loaded c']);
  });

  it('releases nothing that is in use, and loads what is larger than the budget all the same', async () => {
    await load('a', 40);
    inUse.add('a');
    await load('b', 40);
    await load('c', 500);
    expect(told).toEqual(['loaded a', 'loaded b', 'released b', 'loaded c']);
  });

  it('makes room for calls, which a model keeps until it is released', async () => {
    const a = await load('a', 40);
    await load('b', 40);
    await models.keepForCalls(a, { denoiser: 20 });
    expect(models.has('b')).toBe(true);
    await models.keepForCalls(a, { denoiser: 10, vaeDecoder: 1 });
    expect(a.keptBytes).toEqual({ denoiser: 20, vaeDecoder: 1 });
    expect(told).toEqual(['loaded a', 'loaded b', 'released b']);
  });

  it('keeps no memory for a call that had too little of it', async () => {
    const a = await load('a', 40);
    const fails = (error: Error) => models.runCalls([[a, { denoiser: 20 }]], () => Promise.reject(error));
    await expect(fails(new Error('Failed to allocate memory'))).rejects.toThrow('allocate');
    expect(a.keptBytes).toEqual({});
    await expect(fails(new Error('It fails on purpose.'))).rejects.toThrow('on purpose');
    expect(a.keptBytes).toEqual({ denoiser: 20 });
  });

  it('goes on where a model cannot be released', async () => {
    const release = () => Promise.reject(new Error('The session is gone.'));
    await models.load('a', 10, async () => ({ release }));
    expect(await models.releaseIdle()).toBe(true);
    expect(told).toEqual(['loaded a', 'released a']);
  });

  it('leaves room to another process as soon as what it takes is idle, and keeps models again when that has ended', async () => {
    await load('a', 40);
    await load('b', 40);
    for (const key of ['a', 'b']) inUse.add(key);
    models.reservedBytes = 50;
    await models.makeReservedRoom();
    expect([models.has('a'), models.has('b')]).toEqual([true, true]);
    inUse.clear();
    await models.makeReservedRoom();
    expect([models.has('a'), models.has('b')]).toEqual([false, true]);
    models.reservedBytes = 0;
    await load('large', 500);
    await models.makeReservedRoom();
    expect(models.has('large')).toBe(true);
  });

  it('does not release a model for its own calls', async () => {
    const a = await load('a', 90);
    await models.keepForCalls(a, { denoiser: 50 });
    expect(models.has('a')).toBe(true);
  });

  it('counts what a model adds: all of it if it is idle, and the growth of its calls if it is in use', async () => {
    expect(models.bytesToAdd('a', 60, { denoiser: 20 })).toBe(80);
    await models.keepForCalls(await load('a', 60), { denoiser: 30 });
    expect(models.bytesToAdd('a', 60, { denoiser: 20 })).toBe(90);
    inUse.add('a');
    expect(models.bytesToAdd('a', 60, { denoiser: 20 })).toBe(0);
    expect(models.bytesToAdd('a', 60, { denoiser: 50 })).toBe(20);
  });

  it('has room beside models in use for what fits with its calls, and for anything where none is', async () => {
    const hasRoom = (modelKey: string, weightBytes: number, minCallBytes: CallBytes) =>
      models.hasRoom({ modelKey, weightBytes, minCallBytes });
    expect(hasRoom('a', 1_000, {})).toBe(true);
    await load('b', 60);
    expect(hasRoom('a', 1_000, {})).toBe(true);
    inUse.add('b');
    expect(hasRoom('a', 30, { denoiser: 10 })).toBe(true);
    expect(hasRoom('a', 30, { denoiser: 11 })).toBe(false);
    expect(hasRoom('b', 0, { denoiser: 1_000 })).toBe(true);
  });

  it('leaves to a call what models in use, its own and its other calls do not take', async () => {
    const a = await load('a', 30);
    await load('b', 20);
    expect(models.bytesForDenoiser(a, { vaeDecoder: 10 })).toBe(60);
    inUse.add('b');
    expect(models.bytesForDenoiser(a, { vaeDecoder: 10 })).toBe(40);
    await models.keepForCalls(a, { denoiser: 45 });
    expect(models.bytesForDenoiser(a, { vaeDecoder: 10 })).toBe(45);
  });

  it('does not try a model again for some minutes whose files were refused', async () => {
    const open = jest.fn().mockRejectedValue(new ModelFolderError('unet', 'is odd', cures.installAgain));
    for (let i = 0; i < 2; i++) await expect(models.load('odd', 1, open)).rejects.toThrow('is odd');
    expect(open).toHaveBeenCalledTimes(1);
    const broken = jest.fn().mockRejectedValue(new Error('The disk is gone.'));
    for (let i = 0; i < 2; i++) await expect(models.load('sound', 1, broken)).rejects.toThrow('disk');
    expect(broken).toHaveBeenCalledTimes(2);
  });

  it('releases all that is idle, and says whether anything was', async () => {
    await load('a', 10);
    await load('b', 10);
    inUse.add('b');
    expect(await models.releaseIdle()).toBe(true);
    expect(await models.releaseIdle()).toBe(false);
    await models.close();
    expect(told.slice(2)).toEqual(['released a', 'released b']);
  });
});
