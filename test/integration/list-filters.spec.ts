import { ImageTask } from '@app/domain';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { drawTask, failTask, makeFinetune, makePrompts } from '../support/factories';

interface Item {
  id: string;
}

describe('Lists', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    key = await api.createKey();
  });
  afterAll(() => api.close());

  const generations = '/v1/sd/text-to-image';
  const create = async () => {
    const { body } = await api.request<Item>('POST', generations, { key, body: { prompt: 'x' } });
    return body.id;
  };
  const idsOf = async (path: string) => (await api.request<Item[]>('GET', path, { key })).body.map(({ id }) => id);
  const nextOf = (link: string | null) => {
    const next = /^<([^>]+)>; rel="next"/.exec(link ?? '')?.[1];
    return next && new URL(next).pathname + new URL(next).search;
  };

  it('of Generations are limited to a status', async () => {
    const [queued, drawn, failed] = [await create(), await create(), await create()];
    await drawTask(api, drawn);
    await failTask(api, failed, 'No more paint.');
    expect(await idsOf(`${generations}?status=queued`)).toEqual([queued]);
    expect(await idsOf(`${generations}?status=succeeded`)).toEqual([drawn]);
    expect(await idsOf(`${generations}?status=failed&limit=10`)).toEqual([failed]);
    expect(await idsOf(`${generations}?status=canceled`)).toEqual([]);
  });

  it('of Generations and Prompts are limited to times', async () => {
    const finetune = await makeFinetune(api, key);
    const prompts = (
      await makePrompts(
        api,
        key,
        finetune.id,
        Array.from({ length: 3 }, () => ({ prompt: 'a robot' })),
      )
    ).map(({ id }) => id);
    const made = [await create(), await create(), await create()];
    for (const ids of [prompts, made])
      for (const [day, id] of ids.entries())
        await api.dataSource.manager.update(
          ImageTask,
          { id },
          { createdAt: new Date(`2026-01-0${day + 1}T12:00:00Z`) },
        );
    const lists = [
      [generations, made],
      [`/v1/finetunes/${finetune.id}/prompts`, prompts],
    ] as const;
    for (const [path, [first, second, third]] of lists) {
      expect(await idsOf(`${path}?created_after=2026-01-02`)).toEqual([third, second]);
      expect(await idsOf(`${path}?created_before=2026-01-02T12:00:00Z`)).toEqual([first]);
      expect(await idsOf(`${path}?created_after=2026-01-01T12:00:00.000Z&created_before=2026-01-03`)).toEqual([second]);
      expect(await idsOf(`${path}?created_after=2026-01-02T13:00:00%2B02:00&status=queued`)).toEqual([third, second]);
    }
  });

  it('show another caller nothing, whatever they are limited to', async () => {
    await create();
    key = await api.createKey();
    expect(await idsOf(`${generations}?status=queued&created_after=2026-01-01`)).toEqual([]);
  });

  it('are read to the end by a client that deletes what it reads', async () => {
    const made = [await create(), await create(), await create(), await create(), await create()];
    const seen: string[] = [];
    let path: string | undefined = `${generations}?limit=2&status=queued`;
    while (path) {
      const { status, body, headers } = await api.request<Item[]>('GET', path, { key });
      expect(status).toBe(200);
      path = nextOf(headers.get('link'));
      for (const { id } of body) {
        seen.push(id);
        await api.request('DELETE', `${generations}/${id}`, { key });
      }
    }
    expect(seen).toEqual(made.reverse());
  });

  it('keep their place while their elements leave what they are limited to', async () => {
    const made = [await create(), await create(), await create()];
    const first = await api.request<Item[]>('GET', `${generations}?limit=1&status=queued`, { key });
    await drawTask(api, first.body[0].id);
    expect(await idsOf(`${generations}?limit=1&status=queued&after=${first.body[0].id}`)).toEqual([made[1]]);
    expect(await idsOf(nextOf(first.headers.get('link'))!)).toEqual([made[1]]);
  });

  it('have cursors that tell nothing, and are worth nothing in another list', async () => {
    await create();
    await create();
    const { headers } = await api.request('GET', `${generations}?limit=1`, { key });
    const after = new URL(`http://x${nextOf(headers.get('link'))}`).searchParams.get('after')!;
    expect(after).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect((await api.request('GET', `/v1/finetunes?after=${after}`, { key })).status).toBe(400);
    const other = await api.createKey();
    expect((await api.request('GET', `${generations}?after=${after}`, { key: other })).status).toBe(400);
    const changed = `${after[0] === 'A' ? 'B' : 'A'}${after.slice(1)}`;
    expect((await api.request('GET', `${generations}?after=${changed}`, { key })).status).toBe(400);
  });
});
