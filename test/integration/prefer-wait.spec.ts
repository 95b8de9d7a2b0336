import type { Reply, TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { drawTask } from '../support/factories';
import { until } from '../support/until';

interface GenerationJson {
  id: string;
  status: string;
  images: string[];
}

const path = '/v1/sd/text-to-image';

describe('Prefer: wait', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    key = await api.createKey();
  });
  afterAll(() => api.close());

  const create = (headers: Record<string, string>, options: { key?: TestKey; signal?: AbortSignal } = {}, to = path) =>
    api.request<GenerationJson>('POST', to, { key: options.key ?? key, body: { prompt: 'x' }, headers });
  const newest = async (owner = key) => {
    const { body } = await api.request<GenerationJson[]>('GET', `${path}?limit=1`, { key: owner });
    return body[0]?.id;
  };

  it.each([path, '/v1/finetunes'])('at %s answers with the terminated record', async (to) => {
    const answer = create({ prefer: 'respond-async, wait=60' }, {}, to);
    const id = await until(newest, 'it is queued');
    await drawTask(api, id);
    const { status, headers, body } = await answer;
    expect([status, headers.get('preference-applied'), body.status]).toEqual([201, 'wait=60', 'succeeded']);
    expect(body).toEqual((await api.request('GET', `${path}/${id}`, { key })).body);
    expect(body.images).toHaveLength(1);
  });

  it('without a number means a minute', async () => {
    const answer = create({ prefer: 'wait' });
    await drawTask(api, await until(newest, 'it is queued'));
    const { headers, body } = await answer;
    expect([headers.get('preference-applied'), body.status]).toEqual(['wait=60', 'succeeded']);
  });

  it('answers with the queued record when the time is over', async () => {
    const { status, headers, body } = await create({ prefer: 'wait=1' });
    expect([status, headers.get('preference-applied'), body.status]).toEqual([201, 'wait=1', 'queued']);
  });

  it('applies at most a minute, and says so', async () => {
    const answer = create({ prefer: 'wait=3600' });
    await drawTask(api, await until(newest, 'it is queued'));
    expect((await answer).headers.get('preference-applied')).toBe('wait=60');
  });

  it.each(['wait=0', 'wait=x', 'return=minimal'])('is not applied to %s', async (prefer) => {
    const { status, headers } = await create({ prefer });
    expect([status, headers.get('preference-applied')]).toEqual([201, null]);
  });

  it('means nothing to a Fine-Tune', async () => {
    const { status, headers } = await api.request('POST', '/v1/finetunes', {
      key,
      body: { name: 'robot' },
      headers: { prefer: 'wait=60' },
    });
    expect([status, headers.get('preference-applied')]).toEqual([201, null]);
  });

  it('waits outside of the transaction of an Idempotency-Key, and again when the request is repeated', async () => {
    const headers = { prefer: 'wait=60', 'idempotency-key': 'once' };
    const answer = create(headers);
    const id = await until(newest, 'it is committed');
    const repeated = create(headers);
    await drawTask(api, id);
    const [first, second] = await Promise.all([answer, repeated]);
    expect([first.body.id, first.body.status]).toEqual([id, 'succeeded']);
    expect([second.status, second.body.id, second.body.status]).toEqual([201, id, 'succeeded']);
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    expect((await create({ 'idempotency-key': 'once' })).body).toEqual(first.body);
    expect((await api.request<unknown[]>('GET', path, { key })).body).toHaveLength(1);
  });

  it('is applied to 20 answers of a key at a time, while others of it are served, and other keys wait as before', async () => {
    const waiting: Promise<Reply<GenerationJson>>[] = [];
    const count = async () => (await api.request<unknown[]>('GET', path, { key })).body.length;
    for (let n = 0; n < 20; n++) waiting.push(create({ prefer: 'wait=60' }));
    await until(async () => (await count()) === 20, 'all of them wait');
    const further = await create({ prefer: 'wait=60' });
    expect([further.status, further.headers.get('preference-applied')]).toEqual([201, null]);
    const other = await api.createKey();
    const answer = create({ prefer: 'wait=60' }, { key: other });
    await drawTask(api, await until(() => newest(other), 'it is queued'));
    expect((await answer).body.status).toBe('succeeded');
    const { body } = await api.request<GenerationJson[]>('GET', path, { key });
    for (const { id } of body) await api.request('POST', `${path}/${id}/cancel`, { key });
    for (const each of waiting) expect((await each).body.status).toBe('canceled');
  });

  it('holds nothing for a caller who has gone', async () => {
    const gone = new AbortController();
    const answers = Array.from({ length: 20 }, () =>
      fetch(`${api.baseUrl}${path}`, {
        method: 'POST',
        body: '{"prompt":"x"}',
        headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json', prefer: 'wait=60' },
        signal: gone.signal,
      }),
    );
    const count = async () => (await api.request<unknown[]>('GET', `${path}?limit=100`, { key })).body.length;
    await until(async () => (await count()) === 20, 'all of them wait');
    const isApplied = async () => (await create({ prefer: 'wait=1' })).headers.get('preference-applied') !== null;
    const outcomes = Promise.allSettled(answers);
    await until(async () => !(await isApplied()), 'all places of the key are taken');
    gone.abort();
    expect((await outcomes).map(({ status }) => status)).not.toContain('fulfilled');
    await until(isApplied, 'a place is free');
  });
});
