import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readFile, readdir, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { cures } from '@app/diffusion/files';
import type { ModelStore } from '@app/model-store';
import type { HubServer } from '../support/hub-server';
import { eachWithModelStore, hubModel, hubWeights } from '../support/model-store-site';

/** Flips a bit but keeps size and time, as a failing disk does. What the file is linked to stays as it is. */
async function changeSilently(path: string): Promise<void> {
  const { atime, mtime } = await stat(path);
  const content = await readFile(path);
  content[content.length - 1000] ^= 1;
  await rm(path);
  await writeFile(path, content);
  await utimes(path, atime, mtime);
}

describe('ModelStore', () => {
  let folder: string;
  let hub: HubServer;
  let store: ModelStore;
  const { storeWith, inModels, left, wantedHash } = eachWithModelStore((site) => ({ folder, hub, store } = site));

  describe('two processes at once', () => {
    it('lets the first continue and rejects the second', async () => {
      hub.fail(hubWeights, { stallAfter: 1000 });
      const stop = new AbortController();
      const first = store.add(hub.repository, { as: 'sd1.5', signal: stop.signal });
      await once(hub, 'stalled');
      await expect(storeWith().add(hub.repository, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'ModelLocked',
        message: expect.stringContaining(`process ${process.pid} on ${hostname()}`) as string,
      });
      await expect(storeWith().add(hubModel, { as: 'another' })).resolves.toMatchObject({ name: 'another' });
      stop.abort();
      await expect(first).rejects.toMatchObject({ code: 'Aborted' });
      await expect(store.add(hub.repository, { as: 'sd1.5' })).resolves.toMatchObject({ name: 'sd1.5' });
    });

    it('takes over the lock of a dead process, once', async () => {
      const child = spawn(process.execPath, ['-e', '']);
      await once(child, 'exit');
      await mkdir(inModels());
      const dead = { pid: child.pid, host: hostname(), since: new Date().toISOString(), key: 'x' };
      await writeFile(inModels('.sd1.5.lock'), JSON.stringify(dead));
      const runs = await Promise.allSettled([1, 2, 3, 4].map(() => storeWith().add(hubModel, { as: 'sd1.5' })));
      expect(runs.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      const codes = runs.flatMap((run) =>
        run.status === 'rejected'
          ? ((run.reason as Error & { code?: string }).code ?? (run.reason as Error).stack)
          : [],
      );
      expect(codes.filter((code) => code !== 'ModelLocked' && code !== 'ModelExists')).toEqual([]);
      expect(await left()).toEqual(['.sd1.5.darkroom-model.json', 'sd1.5']);
    });

    it('leaves a dead lock to a process that is just taking it over, unless that died too', async () => {
      await mkdir(inModels());
      const longAgo = new Date(Date.now() - 3_600_000);
      for (const file of ['.sd1.5.lock', '.sd1.5.lock.takeover']) await writeFile(inModels(file), 'unreadable');
      await utimes(inModels('.sd1.5.lock'), longAgo, longAgo);
      const busy = { code: 'ModelLocked', message: 'sd1.5 is being changed by several processes at once; try again.' };
      await expect(store.add(hubModel, { as: 'sd1.5' })).rejects.toMatchObject(busy);
      await expect(store.add(hubModel, { as: 'sd1.5' })).rejects.toMatchObject(busy);
      await utimes(inModels('.sd1.5.lock.takeover'), longAgo, longAgo);
      await expect(store.add(hubModel, { as: 'sd1.5' })).rejects.toMatchObject(busy);
      await expect(store.add(hubModel, { as: 'sd1.5' })).resolves.toMatchObject({ name: 'sd1.5' });
    });

    it('takes over a lock from another host only when it was not touched for a long time', async () => {
      await mkdir(inModels());
      const lock = inModels('.sd1.5.lock');
      await writeFile(lock, JSON.stringify({ pid: 1, host: 'elsewhere', since: 'yesterday', key: 'x' }));
      await expect(store.add(hubModel, { as: 'sd1.5' })).rejects.toMatchObject({
        code: 'ModelLocked',
        message: 'sd1.5 is being changed by process 1 on elsewhere since yesterday; wait for it to end.',
      });
      const longAgo = new Date(Date.now() - 3_600_000);
      await utimes(lock, longAgo, longAgo);
      await expect(store.add(hubModel, { as: 'sd1.5' })).resolves.toMatchObject({ name: 'sd1.5' });
    });
  });

  const hashOf = async (from: ModelStore, name: string) => (await from.find(name))?.hash;

  describe('the hash of a model', () => {
    it('is the same for the same files and follows every change', async () => {
      await mkdir(inModels());
      await cp(hubModel, inModels('by-hand'), { recursive: true });
      const hash = await hashOf(store, 'by-hand');
      expect(hash).toBe(await wantedHash());
      expect((await left()).includes('.by-hand.darkroom-model.json')).toBe(true);
      await writeFile(inModels('by-hand', 'README.md'), 'does not matter');
      const preview = JSON.stringify({ weights: Array(3).fill([1, 1, 1, 1]), bias: [0, 0, 0] });
      await writeFile(inModels('by-hand', 'preview.json'), preview);
      expect(await hashOf(store, 'by-hand')).toBe(hash);
      const config = inModels('by-hand', 'scheduler', 'scheduler_config.json');
      await writeFile(config, (await readFile(config, 'utf8')).replace('0.00085', '0.00086'));
      expect(await hashOf(store, 'by-hand')).not.toBe(hash);
      expect(await hashOf(storeWith(), 'by-hand')).toBe(await hashOf(store, 'by-hand'));
    });

    it('does not read a file again while its size and time stay', async () => {
      await store.add(hubModel, { as: 'x' });
      const hash = await hashOf(store, 'x');
      await changeSilently(inModels('x', hubWeights));
      expect(await hashOf(storeWith(), 'x')).toBe(hash);
    });
  });

  describe('list', () => {
    it('is empty if there is no models folder', async () => {
      expect(await store.list()).toEqual([]);
      expect(await store.find('../models')).toBeUndefined();
    });

    it('shows the problem of a broken model and lists the others', async () => {
      await store.add(hubModel, { as: 'good' });
      await mkdir(inModels('upscalers'));
      await writeFile(inModels('README.md'), 'no model');
      await mkdir(inModels('bad'));
      const [bad, good, ...others] = await store.list();
      expect(others).toEqual([]);
      expect(bad).toMatchObject({
        name: 'bad',
        problem: `it is empty. ${cures.installAgain}`,
      });
      expect(good).toMatchObject({ name: 'good' });
      expect(good.problem).toBeUndefined();
    });
  });

  describe('verify', () => {
    it('names the files that differ from what was installed', async () => {
      await store.add(hubModel, { as: 'x' });
      expect(await store.verify('x')).toMatchObject({
        ok: true,
        recorded: true,
        differences: [],
        hash: await wantedHash(),
      });
      await changeSilently(inModels('x', hubWeights));
      await rm(inModels('x', 'tokenizer', 'merges.txt'));
      await writeFile(inModels('x', 'unet', 'extra.json'), '{}');
      expect(await store.verify('x')).toMatchObject({
        ok: false,
        differences: [
          { path: 'tokenizer/merges.txt', reason: 'missing' },
          { path: hubWeights, reason: 'changed' },
        ],
      });
    });

    it('finds hidden changes in a folder that was put there by hand, and accepts visible ones', async () => {
      await mkdir(inModels());
      await cp(hubModel, inModels('by-hand'), { recursive: true });
      const before = await hashOf(store, 'by-hand');
      await changeSilently(inModels('by-hand', hubWeights));
      expect(await store.verify('by-hand')).toMatchObject({
        ok: false,
        recorded: false,
        differences: [{ path: hubWeights, reason: 'changed' }],
      });
      await cp(hubModel, inModels('by-hand'), { recursive: true });
      expect(await store.verify('by-hand')).toMatchObject({ ok: true, recorded: false, hash: before });
    });
  });

  describe('remove', () => {
    it('removes the model and everything that belongs to it', async () => {
      await store.add(hubModel, { as: 'x' });
      await mkdir(inModels('.x.part'));
      await store.remove('x');
      expect(await left()).toEqual([]);
      await expect(store.remove('x')).rejects.toMatchObject({ code: 'ModelNotInstalled' });
      await expect(store.remove('..')).rejects.toMatchObject({ code: 'InvalidModelName' });
    });

    it('only unlinks a linked folder', async () => {
      await mkdir(inModels());
      await cp(hubModel, join(folder, 'elsewhere'), { recursive: true });
      await symlink(join(folder, 'elsewhere'), inModels('x'));
      expect(await store.find('x')).toMatchObject({ hash: await wantedHash() });
      await store.remove('x');
      expect(await left()).toEqual([]);
      expect(await readdir(join(folder, 'elsewhere'))).toContain('unet');
    });
  });
});
