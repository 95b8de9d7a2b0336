import { IdempotentReply, Task } from '@app/domain';
import { startTestApi } from '../support/api';
import { ofSuite } from '../support/of-suite';

describe('Idempotency-Key', () => {
  const api = ofSuite(startTestApi);
  const key = ofSuite(() => api.createKey());

  const create = (idempotencyKey: string, body: object = { prompt: 'a star' }, caller = key) =>
    api.request<{ id: string; code?: string }>('POST', '/v1/sd/text-to-image', {
      key: caller,
      body,
      headers: { 'idempotency-key': idempotencyKey },
    });

  it('replays the first reply, byte for byte, and makes one record', async () => {
    const before = await api.dataSource.manager.count(Task);
    const first = await create('one');
    const again = await create('one');
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.text).toBe(first.text);
    expect(first.headers.get('idempotency-replayed')).toBeNull();
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(await api.dataSource.manager.count(Task)).toBe(before + 1);
  });

  it('rejects another body under the same key', async () => {
    await create('two');
    const other = await create('two', { prompt: 'a moon' });
    expect({ status: other.status, code: other.body.code }).toEqual({ status: 422, code: 'IdempotencyKeyReused' });
  });

  it('compares bodies as JSON values', async () => {
    const raw = (text: string) =>
      api.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
        key,
        raw: text,
        headers: { 'content-type': 'application/json', 'idempotency-key': 'values' },
      });
    const first = await raw('{"prompt":"a star","cfg":7.5,"metadata":{"a":1,"b":[2]}}');
    const again = await raw('{ "metadata": {"b": [2], "a": 1.0},\n "cfg": 7.50, "prompt": "a \\u0073tar" }');
    expect([first.status, again.status, again.body.id]).toEqual([201, 201, first.body.id]);
    expect((await raw('{"prompt":"a star","cfg":7.5,"metadata":{"a":1,"b":[3]}}')).status).toBe(422);
  });

  it('keeps nothing of a deleted record', async () => {
    const post = (path: string, body: unknown) =>
      api.request<{ id: string } & { id: string }[]>('POST', path, {
        key,
        body,
        headers: { 'idempotency-key': `deleted ${path}`.replaceAll(/[^\w]/g, '-') },
      });
    const generation = await post('/v1/sd/text-to-image', { prompt: 'a secret' });
    const finetune = await post('/v1/finetunes', { name: 'secret robot' });
    const path = `/v1/finetunes/${finetune.body.id}`;
    const prompts = await post(`${path}/prompts`, [
      { prompt: 'a secret robot' },
      { prompt: 'two secret robots: a secret robot' },
    ]);
    const collection = await post('/v1/prompts/collections', { name: 'secrets', styles: [] });
    const styles = `/v1/prompts/collections/${collection.body.id}/styles`;
    const style = await post(styles, [{ id: prompts.body[0].id, name: 'secret style' }]);
    const kept = async () =>
      (await api.dataSource.manager.find(IdempotentReply)).filter(({ body }) => body.includes('secret')).length;
    expect(await kept()).toBe(5);
    const counts: number[] = [];
    for (const record of [
      `/v1/sd/text-to-image/${generation.body.id}`,
      `${styles}/${style.body[0].id}`,
      `${path}/prompts/${prompts.body[1].id}`,
      `/v1/prompts/collections/${collection.body.id}`,
      path,
    ]) {
      expect((await api.request('DELETE', record, { key })).status).toBe(200);
      counts.push(await kept());
    }
    // The reply with two Prompts is there until the other one is gone, too.
    expect(counts).toEqual([4, 3, 3, 2, 0]);
  });

  it('of an array keeps what is left of it, and a repeat draws nothing again', async () => {
    const finetune = await api.request<{ id: string }>('POST', '/v1/finetunes', { key, body: { name: 'robot' } });
    const path = `/v1/finetunes/${finetune.body.id}/prompts`;
    const body = ['a red robot', 'a blue robot', 'a green robot'].map((prompt) => ({ prompt }));
    const post = () =>
      api.request<{ id: string }[]>('POST', path, { key, body, headers: { 'idempotency-key': 'robots' } });
    const first = await post();
    const [red, blue, green] = first.body;
    await api.request('DELETE', `${path}/${blue.id}`, { key });
    const repeated = await post();
    expect([repeated.status, repeated.body]).toEqual([201, [red, green]]);
    expect((await api.request<unknown[]>('GET', path, { key })).body).toHaveLength(2);
    const rows = await api.dataSource.manager.findBy(IdempotentReply, { key: 'robots' });
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain(blue.id);
    for (const { id } of [red, green]) await api.request('DELETE', `${path}/${id}`, { key });
    expect(await api.dataSource.manager.countBy(IdempotentReply, { key: 'robots' })).toBe(0);
    expect((await post()).body).toHaveLength(3);
  });

  it('belongs to the caller', async () => {
    const stranger = await api.createKey();
    const mine = await create('three');
    const theirs = await create('three', { prompt: 'a star' }, stranger);
    expect(theirs.status).toBe(201);
    expect(theirs.body.id).not.toBe(mine.body.id);
  });

  it('makes one record from fifty simultaneous requests: equal bodies, or 409 while the first runs', async () => {
    const before = await api.dataSource.manager.count(Task);
    const replies = await Promise.all(Array.from({ length: 50 }, () => create('fifty')));
    const done = replies.filter(({ status }) => status === 201);
    expect(done.length).toBeGreaterThan(0);
    expect(new Set(done.map(({ text }) => text)).size).toBe(1);
    for (const { status, body } of replies)
      if (status !== 201) expect({ status, code: body.code }).toEqual({ status: 409, code: 'IdempotencyKeyInUse' });
    for (const { status, headers } of replies) expect(headers.get('retry-after')).toBe(status === 409 ? '1' : null);
    expect((await create('fifty')).text).toBe(done[0].text);
    expect(await api.dataSource.manager.count(Task)).toBe(before + 1);
  });

  it('keeps nothing of a failed request', async () => {
    expect((await create('four', { prompt: 'x', model: 'sdxl' })).status).toBe(422);
    expect(await api.dataSource.manager.countBy(IdempotentReply, { key: 'four' })).toBe(0);
    expect((await create('four')).status).toBe(201);
  });

  it('is forgotten after a day', async () => {
    const first = await create('five');
    await api.dataSource.manager.update(
      IdempotentReply,
      { key: 'five' },
      { createdAt: new Date(Date.now() - 25 * 3_600_000) },
    );
    const later = await create('five', { prompt: 'a moon' });
    expect(later.status).toBe(201);
    expect(later.body.id).not.toBe(first.body.id);
  });

  it.each(['', 'a b', 'x'.repeat(256), 'ü'])('rejects the key "%s"', async (bad) => {
    const reply = await create(encodeURIComponent(bad) === bad ? bad : Buffer.from(bad, 'utf8').toString('latin1'));
    expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 400, code: 'IdempotencyKeyInvalid' });
  });
});
