import type { ModelLoaded } from './engine-protocol';
import { ModelRegistry } from './model-registry';

class FakeModel {
  released = false;

  async release(): Promise<void> {
    this.released = true;
  }
}

describe(ModelRegistry.name, () => {
  const reports: ModelLoaded[] = [];
  const released: string[] = [];
  const inUse = new Set<string>();
  let registry: ModelRegistry;

  beforeEach(() => {
    reports.length = released.length = 0;
    inUse.clear();
    registry = new ModelRegistry(
      100,
      () => inUse,
      (report) => reports.push(report),
      (key) => released.push(key),
    );
  });

  const get = (key: string, bytes: number): Promise<FakeModel> =>
    registry.get(key, async () => ({ bytes, load: async () => new FakeModel() }));

  it('loads a model once', async () => {
    const first = await get('a', 10);
    expect(await get('a', 10)).toBe(first);
    expect(reports).toEqual([expect.objectContaining({ key: 'a', modelBytes: 10, totalBytes: 10 })]);
  });

  it('releases the least recently used models until the new one fits', async () => {
    const [a, b, c] = [await get('a', 40), await get('b', 40), await get('c', 20)];
    await get('a', 40);
    await get('d', 60);
    expect([a.released, b.released, c.released]).toEqual([false, true, true]);
    expect(reports.at(-1)).toMatchObject({ key: 'd', totalBytes: 100 });
    expect(released).toEqual(['b', 'c']);
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

  it('makes room for drawing by releasing what is idle, and no more than that takes', async () => {
    const [a, b, c] = [await get('a', 30), await get('b', 30), await get('c', 30)];
    inUse.add('c');
    expect(await registry.makeRoom(30)).toBe(1);
    expect(released).toEqual(['a']);
    expect(await registry.makeRoom(1000)).toBe(1);
    expect(released).toEqual(['a', 'b']);
    expect([a.released, b.released, c.released]).toEqual([true, true, false]);
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
});
