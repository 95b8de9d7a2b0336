import { Finetune, FinetunePrompt, Generation, IdempotentReply, Task, WebhookDelivery } from '@app/domain';
import { RetentionService, retentionLock } from '../../apps/api/src/files/retention.service';
import { itOnce } from '../support/back-ends';
import { startTestApi } from '../support/api';
import { drawTask, makeFinetune, makePrompts, storedKeys } from '../support/factories';
import { receiversOfSuite } from '../support/receiver';
import { until } from '../support/until';
import { manyTasks } from '../support/many-tasks';
import { ofTest } from '../support/of-suite';

describe(RetentionService.name, () => {
  const api = ofTest(startTestApi);
  const startReceiver = receiversOfSuite();
  const key = ofTest(() => api.createKey({ retentionDays: 7 }));
  let retention: RetentionService;

  beforeEach(async () => {
    retention = api.app.get(RetentionService);
  });

  const draw = async (owner = key, body: object = {}): Promise<string> => {
    const reply = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
      key: owner,
      body: { prompt: 'a star', ...body },
    });
    return reply.body.id;
  };
  const age = (id: string, days: number) =>
    api.dataSource.query(`UPDATE tasks SET completed_at = now() - $2 * interval '1 day' WHERE id = $1`, [id, days]);
  const idsOf = async (entity: typeof Generation | typeof FinetunePrompt): Promise<string[]> =>
    (await api.dataSource.manager.find<Generation | FinetunePrompt>(entity)).map(({ id }) => id).sort();

  it('deletes finished records after their key’s retention, with their files', async () => {
    const [old, young, open] = [await draw(), await draw(), await draw()];
    const other = await draw(await api.createKey());
    for (const id of [old, young, other]) await drawTask(api, id);
    for (const id of [old, other]) await age(id, 8);
    await age(young, 6);
    await api.dataSource.query(`UPDATE tasks SET created_at = now() - interval '9 days' WHERE id = $1`, [open]);
    expect(await retention.run()).toEqual({ records: 1, replies: 0, entries: 0 });
    expect(await idsOf(Generation)).toEqual([young, open, other].sort());
    const pictures = (await storedKeys(api)).filter((name) => !name.startsWith('thumbnails/'));
    const files = [young, other].flatMap((id) => [`${id}/1/0.png`, `${id}/1/0.thumbnail.webp`]);
    expect(pictures).toEqual(files.sort());
    expect(await api.dataSource.manager.countBy(Task, { id: old })).toBe(0);
    expect(await retention.run()).toEqual({ records: 0, replies: 0, entries: 0 });
  });

  itOnce('deletes in batches until nothing is due', async () => {
    const id = await draw();
    await api.request('POST', `/v1/sd/text-to-image/${id}/cancel`, { key });
    await api.dataSource.query(
      `WITH ${manyTasks(450, {
        id: `lpad(i::text, 24, '0')`,
        owner: '$1',
        status: `'failed'`,
        completedAt: `now() - interval '8 days'`,
      })} SELECT`,
      [key.id],
    );
    expect(await retention.run()).toEqual({ records: 450, replies: 0, entries: 0 });
    expect(await idsOf(Generation)).toEqual([id]);
  });

  itOnce('deletes deliveries with their record, but not before they end', async () => {
    const receiver = await startReceiver((_, response) => response.writeHead(500, { 'retry-after': '3600' }).end());
    const id = await draw(key, { webhook: receiver.url });
    await api.request('POST', `/v1/sd/text-to-image/${id}/cancel`, { key });
    const { manager } = api.dataSource;
    // The end of the delivery would write the status again.
    await until(() => manager.existsBy(WebhookDelivery, { taskId: id, attemptCount: 1 }), 'the first try has ended');
    await age(id, 8);
    expect(await retention.run()).toEqual({ records: 0, replies: 0, entries: 0 });
    await manager.update(WebhookDelivery, { taskId: id }, { status: 'failed' });
    expect(await retention.run()).toEqual({ records: 1, replies: 0, entries: 0 });
    expect(await manager.count(WebhookDelivery)).toBe(0);
  });

  it('deletes Prompts, keeps their Fine-Tune, and keeps a Style’s thumbnail', async () => {
    const finetune = await makeFinetune(api, key);
    const [prompt] = await makePrompts(api, key, finetune.id);
    const collection = await api.request<{ id: string }>('POST', '/v1/prompts/collections', {
      key,
      body: { name: 'mine', styles: [{ id: prompt.id, name: 'plain' }] },
    });
    await drawTask(api, prompt.id);
    await age(prompt.id, 8);
    expect(await retention.run()).toEqual({ records: 1, replies: 0, entries: 0 });
    expect(await idsOf(FinetunePrompt)).toEqual([]);
    expect(await api.dataSource.manager.count(Finetune)).toBe(1);
    const found = await api.request<{ thumbnail: string }>('GET', `/v1/prompts/collections/${collection.body.id}`, {
      key,
    });
    const picture = await fetch(`${api.baseUrl}${new URL(found.body.thumbnail).pathname}`);
    expect(picture.status).toBe(200);
  });

  itOnce('deletes stored replies after a day', async () => {
    const { manager } = api.dataSource;
    const reply = { ownerId: key.id, fingerprint: '', status: 201, body: '{}', recordIds: [] };
    const ago = (hours: number): Date => new Date(Date.now() - hours * 3_600_000);
    await manager.insert(IdempotentReply, [
      { ...reply, key: 'old', createdAt: ago(25) },
      { ...reply, key: 'young', createdAt: ago(23) },
    ]);
    expect(await retention.run()).toEqual({ records: 0, replies: 1, entries: 0 });
    expect((await manager.find(IdempotentReply)).map((row) => row.key)).toEqual(['young']);
  });

  itOnce('works in one process at a time', async () => {
    const other = api.dataSource.createQueryRunner();
    await other.query('SELECT pg_advisory_lock($1)', [retentionLock]);
    expect(await retention.run()).toBeUndefined();
    await other.query('SELECT pg_advisory_unlock($1)', [retentionLock]);
    await other.release();
    expect(await retention.run()).toEqual({ records: 0, replies: 0, entries: 0 });
  });
});
