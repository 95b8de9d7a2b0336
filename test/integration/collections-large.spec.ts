import { limits, newIdentifier } from '@app/domain';
import { IMAGE_STORAGE } from '@app/storage';
import type { ImageStorage } from '@app/storage';
import { DataSource } from 'typeorm';
import { JsonLogger } from '@app/observability';
import { FileSweeper } from '../../apps/inference/src/sweeper/file-sweeper';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import type { ProblemJson } from '../support/factories';
import { makeFinetune } from '../support/factories';
import { rowsRead } from '../support/rows-read';
import { keysIn } from '../support/stored-objects';

describe('Collections with very many Styles', () => {
  let api: TestApi;
  let key: TestKey;
  let path: string;

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
    path = `/v1/finetunes/${(await makeFinetune(api, key, { model: 'shapes' })).id}/styles`;
    // Hundreds of other Collections, so that the planner expects each to be small. In random order, as rows are after
    // some time.
    await api.dataSource.query(
      `WITH made AS (
         INSERT INTO collections (id, owner_id, name, created_at)
         SELECT substr(md5(n::text), 1, 24), $1, 'small', now() FROM generate_series(1, 300) AS n RETURNING id
       )
       INSERT INTO styles (id, owner_id, collection_id, name, template, cfg, steps, created_at)
       SELECT substr(md5(random()::text), 1, 24), $1, id, 'x', '{finetune}', 7, 20, now()
       FROM made, generate_series(1, 100) ORDER BY random()`,
      [key.id],
    );
  });
  afterAll(() => api.close());

  async function makeCollection(size: number): Promise<string> {
    const id = newIdentifier();
    await api.dataSource.query(
      `INSERT INTO collections (id, owner_id, name, created_at) VALUES ($1, $2, 'large', now())`,
      [id, key.id],
    );
    await api.dataSource.query(
      `INSERT INTO styles (id, owner_id, collection_id, name, template, cfg, steps, created_at)
       SELECT substr(md5(random()::text), 1, 24), $2, $1, 'x', '{finetune}', 7, 20, now() FROM generate_series(1, $3)`,
      [id, key.id, size],
    );
    await api.dataSource.query('ANALYZE styles');
    return id;
  }

  const applied = async (ids: string[]): Promise<number> =>
    rowsRead(api.app.get(DataSource), 'styles', async () => {
      const { status, body } = await api.request<ProblemJson>('POST', path, { key, body: ids.map((id) => ({ id })) });
      expect([status, body.code]).toEqual([422, 'TooManyPrompts']);
    });

  it('cost no more to refuse than one Style too many', async () => {
    const least = await applied([await makeCollection(limits.appliedPrompts + 1)]);
    expect(least).toBeGreaterThan(limits.appliedPrompts);
    expect(least).toBeLessThan(limits.appliedPrompts + 50);
    const large = [await makeCollection(20_000), await makeCollection(20_000)];
    expect(await applied(large.slice(0, 1))).toBeLessThanOrEqual(least);
    expect(await applied(large)).toBeLessThanOrEqual(least + 1);
  });

  it('are deleted with their first thousand thumbnail files; the sweeper removes the others', async () => {
    const id = await makeCollection(1050);
    await api.dataSource.query(
      `UPDATE styles SET source_prompt_id = id, thumbnail_key = 'thumbnails/' || id || '/1/0.png' WHERE collection_id = $1`,
      [id],
    );
    const keys = await api.dataSource.query<{ key: string }[]>(
      'SELECT thumbnail_key AS key FROM styles WHERE collection_id = $1',
      [id],
    );
    const storage = api.app.get<ImageStorage>(IMAGE_STORAGE);
    const before = new Set(await keysIn(storage));
    for (const { key: file } of keys) await storage.write(file, Buffer.from('x'));
    expect((await api.request('DELETE', `/v1/prompts/collections/${id}`, { key })).status).toBe(200);
    expect((await keysIn(storage)).filter((file) => !before.has(file))).toHaveLength(50);
    expect(await api.dataSource.query('SELECT id FROM styles WHERE collection_id = $1', [id])).toEqual([]);
    const logger = new JsonLogger('test', 'silent');
    await new FileSweeper(storage, api.dataSource, logger).sweep(Date.now() + 3_600_000);
    expect((await keysIn(storage)).filter((file) => !before.has(file))).toEqual([]);
  });
});
