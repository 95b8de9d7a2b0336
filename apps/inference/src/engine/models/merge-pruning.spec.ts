import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { cachedMerge, placeCachedCopy } from './merge-cache';
import { discardOrphans, pruneMerged } from './merge-pruning';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'darkroom-merge-'));
});
afterEach(() => rm(folder, { recursive: true }));

describe('pruneMerged', () => {
  it('deletes merges that were not used for a day, however much room there is', async () => {
    const [used, unused] = await Promise.all(
      [23, 25].map(async (hoursAgo) => {
        const key = { kind: 'lora', baseHash: 'base', weightsHash: `${hoursAgo}`, variant: '1' } as const;
        const merge = await cachedMerge(folder, key, async () => 1);
        const then = Date.now() / 1000 - hoursAgo * 3600;
        await utimes(join(merge, 'merge.json'), then, then);
        return merge;
      }),
    );
    expect(await readdir(folder)).toContain(basename(unused));
    await pruneMerged(folder, Infinity);
    expect(await readdir(folder)).toEqual([basename(used)]);
  });
});

describe('discardOrphans', () => {
  it('deletes the merges of weights that are gone, but for one that may be about to be loaded', async () => {
    const made = async (weightsHash: string, minutesAgo: number): Promise<string> => {
      const merge = await cachedMerge(
        folder,
        { kind: 'lora', baseHash: 'base', weightsHash, variant: '1' },
        async () => 1,
      );
      const then = Date.now() / 1000 - minutesAgo * 60;
      await utimes(join(merge, 'merge.json'), then, then);
      return basename(merge);
    };
    const [kept, , loading] = [await made('kept', 2), await made('gone', 2), await made('gone just now', 0)];
    const asked: string[] = [];
    await discardOrphans(folder, async (hashes) => {
      asked.push(...hashes);
      return new Set(['kept']);
    });
    expect(asked.sort()).toEqual(['gone', 'kept']);
    expect((await readdir(folder)).sort()).toEqual([kept, loading].sort());
  });

  it('keeps one that is used while the others are looked up', async () => {
    const key = { kind: 'lora', baseHash: 'base', weightsHash: 'gone', variant: '1' } as const;
    const merge = await cachedMerge(folder, key, async () => 1);
    await utimes(join(merge, 'merge.json'), 1, 1);
    await discardOrphans(folder, async () => {
      await cachedMerge(folder, key, () => Promise.reject(new Error('It is there.')));
      return new Set();
    });
    expect(await readdir(folder)).toEqual([basename(merge)]);
  });
});

describe('merges of several owners', () => {
  /** A merge of so many bytes, used so many minutes ago. */
  const merge = async (owner: string, variant: string, minutesAgo: number, bytes = 1000): Promise<string> => {
    const key = { kind: 'lora', baseHash: 'base', weightsHash: owner, variant } as const;
    const build = async (own: string) => {
      await writeFile(join(own, 'model.onnx'), Buffer.alloc(bytes));
      return 1;
    };
    const merged = await cachedMerge(folder, key, build, owner);
    const then = Date.now() / 1000 - minutesAgo * 60;
    await utimes(join(merged, 'merge.json'), then, then);
    return basename(merged);
  };

  it('leaves those of another owner, however many one owner has made later, each with another scale', async () => {
    const old = [await merge('modest', '1', 600), await merge('modest', '0.5', 500)];
    const many: string[] = [];
    for (let scale = 1; scale <= 20; scale++) many.push(await merge('greedy', `${scale}`, 100 - scale));
    await pruneMerged(folder, 6_500);
    const left = await readdir(folder);
    expect(left).toEqual(expect.arrayContaining(old));
    // What the other leaves, those used last.
    expect(left.filter((name) => many.includes(name)).sort()).toEqual(many.slice(-4).sort());
  });

  it('leaves an owner more than half where nobody else needs it', async () => {
    const many: string[] = [];
    for (let scale = 1; scale <= 20; scale++) many.push(await merge('only', `${scale}`, 100 - scale));
    await pruneMerged(folder, 6_500);
    expect((await readdir(folder)).sort()).toEqual(many.slice(-6).sort());
  });

  it('leaves an older one that fits where a larger one does not', async () => {
    const sizes = { one: 3_500, two: 3_900, three: 3_800, four: 400 };
    const names: string[] = [];
    for (const [i, [owner, bytes]] of Object.entries(sizes).entries())
      names.push(await merge(owner, '1', 20 + i, bytes));
    await pruneMerged(folder, 8_200);
    expect((await readdir(folder)).sort()).toEqual([names[0], names[1], names[3]].sort());
  });

  it('need at most twice the bytes, and what was used in the last minute', async () => {
    const recent: string[] = [];
    for (let scale = 1; scale <= 20; scale++) recent.push(await merge('greedy', `${scale}`, 9 - scale / 3));
    const justNow = [await merge('greedy', '21', 0.5), await merge('greedy', '22', 0)];
    await pruneMerged(folder, 3_500);
    const left = await readdir(folder);
    expect(left).toEqual(expect.arrayContaining(justNow));
    expect(left.length).toBeLessThanOrEqual(7);
  });
});

describe('copies of bases on another device', () => {
  let base: string;
  beforeEach(async () => {
    base = join(folder, 'base.onnx');
    await writeFile(base, Buffer.alloc(10_000));
  });
  const cache = () => join(folder, 'cache');
  const copies = () => readdir(join(cache(), 'bases'));

  /** A merge with 1,000 bytes of its own, a record, and one file of its base, used so many hours ago. */
  const merge = async (weightsHash: string, hoursAgo: number, baseHash = 'base', owner = '') => {
    const key = { kind: 'lora', baseHash, weightsHash, variant: '1' } as const;
    const merged = await cachedMerge(
      cache(),
      key,
      async (own) => {
        await placeCachedCopy(cache(), baseHash, base, join(own, 'model.onnx'));
        await writeFile(join(own, 'changed.weights'), Buffer.alloc(1_000));
        return 1;
      },
      owner,
    );
    const then = Date.now() / 1000 - hoursAgo * 3600;
    await utimes(join(merged, 'merge.json'), then, then);
    return merged;
  };
  const left = async () => (await readdir(cache())).filter((name) => name.startsWith('lora-')).sort();

  it('are deleted with the last merge that links to them', async () => {
    await merge('one', 3);
    const second = await merge('two', 2);
    expect(await copies()).toHaveLength(1);
    await pruneMerged(cache(), 11_500);
    expect(await left()).toEqual([basename(second)]);
    expect(await copies()).toHaveLength(1);
    await pruneMerged(cache(), 0);
    expect(await left()).toEqual([]);
    expect(await copies()).toEqual([]);
    expect((await stat(join(await merge('one', 3), 'model.onnx'))).size).toBe(10_000);
  });

  it('count, once for all merges of a base', async () => {
    const merges = [await merge('one', 3), await merge('two', 2), await merge('three', 1, 'other version')];
    await pruneMerged(cache(), 2 * 10_000 + 3 * 1_000 + 500);
    expect(await left()).toHaveLength(3);
    // Room for both of the base but not for that of the other version too.
    await pruneMerged(cache(), 10_000 + 3 * 1_000 + 500);
    expect(await left()).toEqual([basename(merges[2])]);
    expect(await copies()).toHaveLength(1);
  });

  it('count for no owner, whoever used one last', async () => {
    const modest = await merge('modest', 1, 'base', 'modest');
    const greedy: string[] = [];
    for (let hours = 2; hours <= 6; hours++) greedy.push(await merge(`greedy ${hours}`, hours, 'base', 'greedy'));
    await pruneMerged(cache(), 10_000 + 3 * 1_000 + 500);
    expect(await left()).toEqual([modest, greedy[0], greedy[1]].map((each) => basename(each)).sort());
  });

  it('are deleted with merges of the last minutes too, where these need more than twice the room', async () => {
    const minutes = 1 / 60;
    const merges = [await merge('one', 9 * minutes), await merge('two', 5 * minutes), await merge('three', 0)];
    await pruneMerged(cache(), (10_000 + 3 * 1_000 + 500) / 2);
    expect(await left()).toHaveLength(3);
    await pruneMerged(cache(), (10_000 + 2 * 1_000 + 500) / 2);
    expect(await left()).toEqual([basename(merges[1]), basename(merges[2])].sort());
    await pruneMerged(cache(), 0);
    expect(await left()).toEqual([basename(merges[2])]);
  });

  it('are made again if another process deletes one at that moment', async () => {
    await merge('one', 3);
    await rm(join(cache(), 'bases', (await copies())[0]));
    await merge('two', 2);
    expect(await copies()).toHaveLength(1);
  });

  it('are linked to before they can be found, so that no other process deletes one', async () => {
    const to = join(folder, 'model.onnx');
    await mkdir(join(cache(), 'bases'), { recursive: true });
    // A file system that cannot make the link leaves no copy that nothing links to.
    await writeFile(to, 'in the way');
    await expect(placeCachedCopy(cache(), 'base', base, to)).rejects.toThrow('EEXIST');
    expect(await copies()).toEqual([]);
    expect(await readdir(cache())).toEqual(['bases']);
  });
});
