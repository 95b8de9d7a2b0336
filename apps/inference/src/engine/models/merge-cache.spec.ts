import { link, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { cachedMerge, MergeGoneError, removeAbandoned, withMerge } from './merge-cache';

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

  it('keeps what is being built for however long, and removes what a process that died has left', async () => {
    jest.useFakeTimers({ now: Date.now(), doNotFake: ['nextTick', 'setImmediate'] });
    try {
      await cachedMerge(folder, key, async (own) => {
        const touchedAt = async () => (await stat(own)).mtimeMs;
        await mkdir(join(folder, '.tmp-dead'));
        for (let minutes = 0; minutes < 120; minutes += 10) {
          await utimes(own, 1, 1);
          jest.advanceTimersByTime(30_000);
          for (let turns = 0; (await touchedAt()) === 1000 && turns < 1000; turns++) await turn();
          jest.setSystemTime(Date.now() + 10 * 60_000);
          await removeAbandoned(folder);
        }
        expect(await readdir(folder)).toEqual([basename(own)]);
        return 1;
      });
    } finally {
      jest.useRealTimers();
    }
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

describe('withMerge', () => {
  it('throws that the merge is gone if it has been deleted, and else what is wrong', async () => {
    const key = { kind: 'lora', baseHash: 'base', weightsHash: 'weights', variant: '1' } as const;
    const merge = await cachedMerge(folder, key, async () => 1);
    const read = () => Promise.reject(new Error('It does not exist.'));
    await expect(withMerge(merge, read)).rejects.toThrow('It does not exist.');
    await rm(merge, { recursive: true });
    await expect(withMerge(merge, read)).rejects.toThrow(MergeGoneError);
    expect(await withMerge(merge, async () => 'loaded before')).toBe('loaded before');
  });
});
