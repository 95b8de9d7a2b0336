import { link, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { cachedMerge, placeCachedCopy, pruneMerged } from './merge-cache';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'darkroom-merge-'));
});
afterEach(() => rm(folder, { recursive: true }));

describe('cachedMerge', () => {
  const key = { kind: 'lora', baseHash: 'base', weightsHash: 'weights', variant: '1' } as const;

  it('builds it once, and marks it as used whenever it is asked for', async () => {
    const merge = await cachedMerge(folder, key, async () => 1);
    await utimes(join(merge, 'merge.json'), 1, 1);
    expect(await cachedMerge(folder, key, () => Promise.reject(new Error('It is there.')))).toBe(merge);
    expect((await stat(join(merge, 'merge.json'))).mtimeMs).toBeGreaterThan(1000);
  });

  it('keeps the first that is complete where two build at once', async () => {
    let [building, go] = [0, (): void => undefined];
    const both = new Promise<void>((resolve) => (go = resolve));
    const build = async (own: string) => {
      if (++building === 2) go();
      await both;
      await writeFile(join(own, 'model.onnx'), 'the same');
      return 1;
    };
    const [one, other] = await Promise.all([cachedMerge(folder, key, build), cachedMerge(folder, key, build)]);
    expect([other, building]).toEqual([one, 2]);
    expect(await readdir(folder)).toEqual([basename(one)]);
  });

  it('uses the result of another process that finished first', async () => {
    const place = await cachedMerge(folder, key, async () => 1);
    await rm(place, { recursive: true });
    const merge = await cachedMerge(folder, key, async (own) => {
      await writeFile(join(own, 'model.onnx'), 'ours');
      await mkdir(place);
      await writeFile(join(place, 'merge.json'), '{"merged":2}');
      return 3;
    });
    expect(merge).toBe(place);
    expect(await readdir(folder)).toEqual([basename(place)]);
    expect(await readdir(place)).toEqual(['merge.json']);
  });

  it('builds again after a failure', async () => {
    const fail = () => Promise.reject(new Error('No room.'));
    await expect(cachedMerge(folder, key, fail)).rejects.toThrow('No room.');
    expect(await readdir(folder)).toEqual([]);
    const merge = await cachedMerge(folder, key, async () => 1);
    expect(await readdir(folder)).toEqual([basename(merge)]);
  });

  it('does not overwrite a file of the base with the name of its own record', async () => {
    const base = join(folder, 'base.json');
    await writeFile(base, 'of the base');
    await cachedMerge(folder, key, async (own) => {
      await link(base, join(own, 'merge.json'));
      return 1;
    });
    expect(await readFile(base, 'utf8')).toBe('of the base');
  });
});

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
    await writeFile(base, Buffer.alloc(1000));
  });
  const cache = () => join(folder, 'cache');
  const copies = () => readdir(join(cache(), 'bases'));

  /** A merge with 100 bytes of its own and one file of its base, used so many hours ago. */
  const merge = async (weightsHash: string, hoursAgo: number, baseHash = 'base', owner = '') => {
    const key = { kind: 'lora', baseHash, weightsHash, variant: '1' } as const;
    const merged = await cachedMerge(
      cache(),
      key,
      async (own) => {
        await placeCachedCopy(cache(), baseHash, base, join(own, 'model.onnx'));
        await writeFile(join(own, 'changed.weights'), Buffer.alloc(100));
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
    await pruneMerged(cache(), 1150);
    expect(await left()).toEqual([basename(second)]);
    expect(await copies()).toHaveLength(1);
    await pruneMerged(cache(), 0);
    expect(await left()).toEqual([]);
    expect(await copies()).toEqual([]);
    expect((await stat(join(await merge('one', 3), 'model.onnx'))).size).toBe(1000);
  });

  it('count, once for all merges of a base', async () => {
    const merges = [await merge('one', 3), await merge('two', 2), await merge('three', 1, 'other version')];
    await pruneMerged(cache(), 2 * 1000 + 3 * 100 + 100);
    expect(await left()).toHaveLength(3);
    // Room for both of the base but not for that of the other version too.
    await pruneMerged(cache(), 1000 + 3 * 100 + 100);
    expect(await left()).toEqual([basename(merges[2])]);
    expect(await copies()).toHaveLength(1);
  });

  it('count for no owner, whoever used one last', async () => {
    const modest = await merge('modest', 1, 'base', 'modest');
    const greedy: string[] = [];
    for (let hours = 2; hours <= 6; hours++) greedy.push(await merge(`greedy ${hours}`, hours, 'base', 'greedy'));
    await pruneMerged(cache(), 1000 + 3 * 100 + 150);
    expect(await left()).toEqual([modest, greedy[0], greedy[1]].map((each) => basename(each)).sort());
  });

  it('are deleted with merges of the last minutes too, where these need more than twice the room', async () => {
    const minutes = 1 / 60;
    const merges = [await merge('one', 9 * minutes), await merge('two', 5 * minutes), await merge('three', 0)];
    await pruneMerged(cache(), (1000 + 3 * 100 + 100) / 2);
    expect(await left()).toHaveLength(3);
    await pruneMerged(cache(), (1000 + 2 * 100 + 100) / 2);
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
