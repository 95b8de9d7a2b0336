import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { cachedMerge, hashFolder } from './merged-folder';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'darkroom-merge-'));
});
afterEach(() => rm(folder, { recursive: true }));

describe('cachedMerge', () => {
  const key = { kind: 'lora', baseHash: 'base', weightsHash: 'weights', variant: '1' } as const;

  it('builds once where two ask at once, and not again later', async () => {
    let builds = 0;
    const build = async () => ({ merged: ++builds });
    const [one, other] = await Promise.all([cachedMerge(folder, key, build), cachedMerge(folder, key, build)]);
    expect(other).toEqual(one);
    expect(await cachedMerge(folder, key, build)).toEqual({ folder: one.folder, merged: 1 });
  });

  it('takes what another process finished first', async () => {
    const { folder: place } = await cachedMerge(folder, key, async () => ({ merged: 1 }));
    await rm(place, { recursive: true });
    const merge = await cachedMerge(folder, key, async (own) => {
      await writeFile(join(own, 'model.onnx'), 'ours');
      await mkdir(place);
      await writeFile(join(place, 'merge.json'), '{"merged":2}');
      return { merged: 3 };
    });
    expect(merge).toEqual({ folder: place, merged: 2 });
    expect(await readdir(folder)).toEqual([basename(place)]);
  });

  it('builds again after a failure', async () => {
    const fail = () => Promise.reject(new Error('No room.'));
    await expect(cachedMerge(folder, key, fail)).rejects.toThrow('No room.');
    expect(await readdir(folder)).toEqual([]);
    await expect(cachedMerge(folder, key, async () => ({ merged: 1 }))).resolves.toMatchObject({ merged: 1 });
  });
});

describe('hashFolder', () => {
  it('tells names and contents apart, in folders too', async () => {
    const hashes = new Set<string>();
    for (const [name, content] of [
      ['a', 'x'],
      ['a', 'y'],
      ['b', 'x'],
      ['sub/a', 'x'],
    ]) {
      await rm(folder, { recursive: true });
      await mkdir(join(folder, 'sub'), { recursive: true });
      await writeFile(join(folder, name), content);
      hashes.add(await hashFolder(folder));
      expect(await hashFolder(folder)).toBe([...hashes].at(-1));
    }
    expect(hashes.size).toBe(4);
  });
});
