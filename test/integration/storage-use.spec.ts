import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiKey, newIdentifier, StorageUse, Upload } from '@app/domain';
import { Tasks } from '@app/tasks';
import { RetentionService } from '../../apps/api/src/files/retention.service';
import { StorageUseSweeper } from '../../apps/api/src/files/storage-use.sweeper';
import { startTestApi, type TestKey } from '../support/api';
import { claimTask } from '../support/claim-task';
import { makeFinetune, makePrompts, type ProblemJson } from '../support/factories';
import { untilAfter } from '../support/until';
import { ofSuite } from '../support/of-suite';

const octets = { 'content-type': 'application/octet-stream' };

describe('storage of a key', () => {
  const api = ofSuite(() => startTestApi({ STORAGE_MB_PER_KEY: '5' }));
  let key: TestKey;
  let weights: Buffer;

  beforeAll(async () => {
    weights = await readFile(join('test', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors'));
  });
  beforeEach(async () => {
    key = await api.createKey();
  });

  const use = async () => {
    const row = await api.dataSource.manager.findOneBy(StorageUse, { ownerId: key.id });
    return [row?.pictureBytes ?? 0, row?.weightBytes ?? 0];
  };
  const put = (id: string, raw: Uint8Array = weights) =>
    api.request<ProblemJson>('PUT', `/v1/finetunes/${id}/weights`, { key, raw, headers: octets });
  const draw = () =>
    api.request<ProblemJson & { id: string }>('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'a star' } });

  /** Ends a task as a worker does, with pictures of the given sizes. */
  async function settle(id: string, ...sizes: number[]): Promise<void> {
    const tasks = api.app.get(Tasks);
    const task = await claimTask(api.dataSource.manager, id);
    const images = sizes.map((bytes, index) => ({
      id: newIdentifier(),
      token: newIdentifier(),
      index,
      storageKey: `${id}/1/${index}.png`,
      contentType: 'image/png',
      width: 512,
      height: 512,
      bytes,
    }));
    expect(await tasks.settle(task, { status: 'succeeded', images })).toBe(true);
  }

  it('counts pictures and weights as they are added and deleted', async () => {
    const { id: drawn } = (await draw()).body;
    await settle(drawn, 1000, 2000);
    expect(await use()).toEqual([3000, 0]);
    const { id } = await makeFinetune(api, key);
    await put(id);
    expect(await use()).toEqual([3000, weights.length]);
    await put(id);
    expect(await use()).toEqual([3000, weights.length]);
    const [prompt] = await makePrompts(api, key, id);
    await settle(prompt.id, 500);
    expect(await use()).toEqual([3500, weights.length]);
    await api.request('DELETE', `/v1/sd/text-to-image/${drawn}`, { key });
    expect(await use()).toEqual([500, weights.length]);
    await api.request('DELETE', `/v1/finetunes/${id}`, { key });
    expect(await use()).toEqual([0, 0]);
  });

  it('counts files that retention deletes', async () => {
    const { id } = (await draw()).body;
    await settle(id, 700);
    await api.dataSource.manager.update(ApiKey, { id: key.id }, { retentionDays: 1 });
    await api.dataSource.query(`UPDATE tasks SET completed_at = now() - interval '2 days' WHERE id = $1`, [id]);
    await api.app.get(RetentionService).run();
    expect(await use()).toEqual([0, 0]);
  });

  it('is explained in the error when it is used up', async () => {
    const { id } = await makeFinetune(api, key);
    const { id: first } = (await draw()).body;
    await settle(first, 4_970_000);
    const refused = await put(id);
    expect([refused.status, refused.body.code]).toEqual([422, 'StorageFull']);
    expect(refused.body.detail).toMatch(
      /may store 5 MB and has 4\.99\d MB: 4\.97 MB of pictures, 0 MB of weights, 0\.02\d MB of records, 0 MB kept/,
    );
    for (const { status, body } of [
      await draw(),
      await api.request<ProblemJson>('POST', `/v1/finetunes/${id}/prompts`, { key, body: [{ prompt: 'a robot' }] }),
    ])
      expect([status, body.code]).toEqual([422, 'StorageFull']);
    await api.request('DELETE', `/v1/sd/text-to-image/${first}`, { key });
    expect((await draw()).status).toBe(201);
    expect((await put(id)).status).toBe(200);
  });

  it('counts uploads in progress, but not those of a dead process', async () => {
    const { id } = await makeFinetune(api, key);
    const { id: drawn } = (await draw()).body;
    const upload = { id: newIdentifier(), ownerId: key.id, bytes: 4_570_000 };
    await api.dataSource.manager.insert(Upload, upload);
    const waits = await put(id);
    expect([waits.status, waits.body.code, waits.headers.get('retry-after')]).toEqual([429, 'RoomReserved', '10']);
    await settle(drawn, 4_970_000);
    const full = await put(id);
    expect([full.status, full.body.code]).toEqual([422, 'StorageFull']);
    await api.request('DELETE', `/v1/sd/text-to-image/${drawn}`, { key });
    await api.dataSource.query(`UPDATE uploads SET renewed_at = now() - interval '3 minutes'`);
    expect((await put(id)).status).toBe(200);
    await api.app.get(StorageUseSweeper).sweep();
    expect(await api.dataSource.manager.countBy(Upload, { ownerId: key.id })).toBe(0);
  });

  it('uses the key’s own limit if it has one', async () => {
    const { id } = (await draw()).body;
    // A process may use a key's limit and count for up to a second.
    const isAnswered = (status: number) =>
      untilAfter(1_000, async () => (await draw()).status === status, `it is ${status}`);
    await settle(id, 4_970_000);
    await isAnswered(422);
    await api.dataSource.manager.update(ApiKey, { id: key.id }, { maxStorageMb: 6 });
    await isAnswered(201);
    await settle((await draw()).body.id, 1_000_000);
    await isAnswered(422);
    await api.dataSource.manager.update(ApiKey, { id: key.id }, { maxStorageMb: 0 });
    await isAnswered(201);
  });

  it('is kept for what waits, so that no more is accepted than fits, however much comes at once', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, draw));
    const accepted = all.filter(({ status }) => status === 201);
    expect(accepted).toHaveLength(12);
    for (const { body } of all.filter(({ status }) => status !== 201)) expect(body.code).toBe('RoomReserved');
    await api.request('POST', `/v1/sd/text-to-image/${accepted[0].body.id}/cancel`, { key });
    await settle(accepted[1].body.id, 1000);
    expect([await draw(), await draw(), await draw()].map(({ status }) => status)).toEqual([201, 201, 429]);
    for (const { body } of accepted) await api.request('DELETE', `/v1/sd/text-to-image/${body.id}`, { key });
    const { reservedBytes } = await api.dataSource.manager.findOneByOrFail(StorageUse, { ownerId: key.id });
    expect(reservedBytes).toBe(2 * 512 * 512 * 1.5);
  });

  it('does not take pictures that no longer fit: their task fails with a sentence, and what it used is counted', async () => {
    const [first, second] = [(await draw()).body.id, (await draw()).body.id];
    await settle(first, 4_500_000);
    const task = await claimTask(api.dataSource.manager, second);
    const tasks = api.app.get(Tasks);
    await expect(tasks.assertStorable(key.id, 600_000)).rejects.toThrow('There is no room');
    const image = { id: newIdentifier(), token: newIdentifier(), index: 0, storageKey: `${second}/1/0.png` };
    const images = [{ ...image, contentType: 'image/png', width: 512, height: 512, bytes: 600_000 }];
    const settled = tasks.settle(task, { status: 'succeeded', images, computeSeconds: 3 });
    const full = await settled.catch((error: Error) => error.message);
    // As the worker does with it.
    await tasks.settle(task, { status: 'failed', error: String(full), computeSeconds: 3 });
    const { body } = await api.request<{ status: string; error: string; images: string[] }>(
      'GET',
      `/v1/sd/text-to-image/${second}`,
      { key },
    );
    expect(body).toMatchObject({ status: 'failed', images: [] });
    expect(body.error).toMatch(/^There is no room for what this would make: the API key may store 5 MB and has 5\.1/);
    expect(await use()).toEqual([4_500_000, 0]);
    const [used] = await api.dataSource.query<{ seconds: number }[]>(
      'SELECT sum(compute_seconds) AS seconds FROM daily_usage WHERE owner_id = $1',
      [key.id],
    );
    expect(used.seconds).toBe(3);
  });

  it('counts Fine-Tunes, Collections and Styles, which are refused when there is no room', async () => {
    const count = async () =>
      (await api.dataSource.manager.findOneBy(StorageUse, { ownerId: key.id }))?.recordBytes ?? 0;
    const { id } = await makeFinetune(api, key);
    const prompts = await makePrompts(api, key, id);
    const before = await count();
    const body = { name: 'styles', styles: Array.from({ length: 100 }, () => ({ id: prompts[0].id, name: 'x' })) };
    const { body: collection } = await api.request<{ id: string }>('POST', '/v1/prompts/collections', { key, body });
    expect(await count()).toBeGreaterThan(before + 50_000);
    await api.dataSource.manager.update(ApiKey, { id: key.id }, { maxStorageMb: 1 });
    const path = `/v1/prompts/collections/${collection.id}/styles`;
    for (let round = 0; round < 20 && (await count()) < 940_000; round++)
      await api.request('POST', path, { key, body: body.styles });
    const refused = await api.request<ProblemJson>('POST', path, { key, body: body.styles });
    expect([refused.status, refused.body.code]).toEqual([429, 'RoomReserved']);
    expect(await api.app.get(StorageUseSweeper).sweep(0)).toBe(0);
    const { body: styles } = await api.request<{ id: string }[]>('GET', `${path}?limit=1`, { key });
    await api.request('DELETE', `${path}/${styles[0].id}`, { key });
    await api.request('DELETE', `/v1/prompts/collections/${collection.id}`, { key });
    expect(await count()).toBe(before);
    await api.request('DELETE', `/v1/finetunes/${id}`, { key });
    expect(await count()).toBe(0);
  });

  it('is corrected when the count is wrong', async () => {
    const { id } = await makeFinetune(api, key);
    await put(id);
    const { id: drawn } = (await draw()).body;
    await settle(drawn, 1234);
    await api.dataSource.manager.update(StorageUse, { ownerId: key.id }, { pictureBytes: 7, weightBytes: -7 });
    expect(await api.app.get(StorageUseSweeper).sweep(0)).toBe(1);
    expect(await use()).toEqual([1234, weights.length]);
    expect(await api.app.get(StorageUseSweeper).sweep(0)).toBe(0);
  });

  it('is compared with the rows while it changes', async () => {
    await api.dataSource.manager.update(ApiKey, { id: key.id }, { maxStorageMb: 50 });
    const ids: string[] = [];
    for (let i = 0; i < 20; i++) ids.push((await draw()).body.id);
    await settle(ids[0], 5);
    await api.dataSource.manager.update(StorageUse, { ownerId: key.id }, { pictureBytes: 1005 });
    const sweeper = api.app.get(StorageUseSweeper);
    await Promise.all([
      ...ids.slice(1).map((id) => settle(id, 10)),
      (async () => {
        for (let round = 0; round < 5; round++) await sweeper.sweep(0);
      })(),
      (async () => {
        for (let round = 0; round < 5; round++) await sweeper.sweep(0);
      })(),
    ]);
    expect(await use()).toEqual([195, 0]);
  });

  it('stays correct when a task is settled while it is deleted', async () => {
    for (let round = 0; round < 10; round++) {
      const { id } = (await draw()).body;
      await Promise.allSettled([settle(id, 100), api.request('DELETE', `/v1/sd/text-to-image/${id}`, { key })]);
      await api.request('DELETE', `/v1/sd/text-to-image/${id}`, { key });
    }
    expect(await use()).toEqual([0, 0]);
  });
});
