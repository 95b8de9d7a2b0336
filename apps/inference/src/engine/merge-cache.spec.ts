import { link, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { cachedMerge } from './merge-cache';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'darkroom-merge-'));
});
afterEach(() => rm(folder, { recursive: true }));

describe('cachedMerge', () => {
  const key = { kind: 'lora', baseHash: 'base', weightsHash: 'weights', variant: '1' } as const;

  it('builds once if two ask at once, and not again later', async () => {
    let builds = 0;
    const build = async () => ++builds;
    const [one, other] = await Promise.all([cachedMerge(folder, key, build), cachedMerge(folder, key, build)]);
    expect(other).toBe(one);
    expect(await cachedMerge(folder, key, build)).toBe(one);
    expect(builds).toBe(1);
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
