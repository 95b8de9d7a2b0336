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
  let registry: ModelRegistry;

  beforeEach(() => {
    reports.length = 0;
    registry = new ModelRegistry(100, (report) => reports.push(report));
  });

  const get = (key: string, bytes: number): Promise<FakeModel> =>
    registry.get(key, async () => ({ bytes, load: async () => new FakeModel() }));

  it('loads a model once', async () => {
    const first = await get('a', 10);
    expect(await get('a', 10)).toBe(first);
    expect(reports).toEqual([expect.objectContaining({ key: 'a', modelBytes: 10, totalBytes: 10, evicted: [] })]);
  });

  it('releases the least recently used models until the new one fits', async () => {
    const [a, b, c] = [await get('a', 40), await get('b', 40), await get('c', 20)];
    await get('a', 40);
    await get('d', 60);
    expect([a.released, b.released, c.released]).toEqual([false, true, true]);
    expect(reports.at(-1)).toMatchObject({ key: 'd', evicted: ['b', 'c'], totalBytes: 100 });
  });

  it('keeps a model that is larger than the budget, alone', async () => {
    const small = await get('small', 10);
    const large = await get('large', 1000);
    expect([small.released, large.released]).toEqual([true, false]);
    expect(await get('large', 1000)).toBe(large);
  });

  it('does not keep a model that failed to load', async () => {
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
