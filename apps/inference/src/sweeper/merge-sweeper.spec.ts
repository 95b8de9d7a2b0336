import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JsonLogger } from '@app/observability';
import { DataSource } from 'typeorm';
import { MergeSweeper } from './merge-sweeper';

describe(MergeSweeper.name, () => {
  let dataDir: string;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'darkroom-sweep-'));
  });
  afterEach(() => rm(dataDir, { recursive: true }));

  // Merges of earlier versions do not say of which weights they are, so nothing is looked up.
  const unused = new DataSource({ type: 'postgres' });
  const sweeper = () => new MergeSweeper({ dataDir, mergedCacheMb: 1 }, unused, new JsonLogger('test', 'silent'));

  it('deletes the merges in the data folder that were not used for a day, and keeps the others', async () => {
    const merges = join(dataDir, 'cache', 'finetunes');
    for (const [name, hoursAgo] of [
      ['lora-used', 1],
      ['lora-unused', 25],
    ] as const) {
      await mkdir(join(merges, name), { recursive: true });
      await writeFile(join(merges, name, 'merge.json'), '{"merged":1}');
      const then = Date.now() / 1000 - hoursAgo * 3600;
      await utimes(join(merges, name, 'merge.json'), then, then);
    }
    await sweeper().sweep();
    expect(await readdir(merges)).toEqual(['lora-used']);
  });

  it('has nothing to do where nothing was merged yet', async () => {
    await sweeper().sweep();
    expect(await readdir(dataDir)).toEqual([]);
  });
});
