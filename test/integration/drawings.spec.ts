import { newIdentifier, Task } from '@app/domain';
import type { DrawingDto } from '@app/domain/http';
import { type Reply, startTestApi } from '../support/api';
import { drawTask, failTask, makeFinetune, makePrompts, type ProblemJson } from '../support/factories';
import { manyTasks } from '../support/many-tasks';
import { ofSuite, ofTest } from '../support/of-suite';
import { rowsRead } from '../support/rows-read';

const api = ofSuite(startTestApi);

describe('the list of drawings', () => {
  const key = ofTest(() => api.createKey());
  let [first, second, generation, prompts]: string[] = [];
  let finetunes: string[];

  /** A Prompt, a Generation and two Prompts of one request, of two Fine-Tunes; times a second apart. */
  beforeEach(async () => {
    finetunes = [(await makeFinetune(api, key)).id, (await makeFinetune(api, key, { name: 'cat' })).id];
    const [{ id }] = await makePrompts(api, key, finetunes[0], [{ prompt: 'a robot', num_generations: 2 }]);
    const body = { prompt: 'a star' };
    const { body: made } = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body });
    const pair = await makePrompts(api, key, finetunes[1], [{ prompt: 'a cat' }, { prompt: 'one cat' }]);
    [first, generation] = [id, made.id];
    [second, prompts] = pair.map((each) => each.id).sort((a, b) => (a < b ? 1 : -1));
    for (const [index, ids] of [[first], [generation], [second, prompts]].entries())
      for (const each of ids)
        await api.dataSource.manager.update(
          Task,
          { id: each },
          { createdAt: new Date(1_790_000_000_000 + index * 1000) },
        );
  });

  const list = async <T = DrawingDto[]>(query = '') => api.request<T>('GET', `/v1/drawings${query}`, { key });
  const idsOf = async (query?: string) => (await list(query)).body.map(({ id }) => id);

  it('has Generations and the Prompts of all Fine-Tunes in short, newest first', async () => {
    await drawTask(api, first);
    await failTask(api, generation, 'No paint is left.');
    const { body } = await list();
    expect(body.map(({ id }) => id)).toEqual([second, prompts, generation, first]);
    expect(body.slice(2)).toEqual([
      {
        ...{ kind: 'generation', id: generation, finetune: null, prompt: 'a star', status: 'failed' },
        ...{ width: 512, height: 512 },
        ...{
          error: 'No paint is left.',
          num_generations: 1,
          filtered: 0,
          thumbnail: null,
          created_at: '2026-09-21T14:13:21.000Z',
        },
      },
      {
        ...{ kind: 'prompt', id: first, finetune: finetunes[0], prompt: 'a robot', status: 'succeeded', error: null },
        ...{ width: 512, height: 512 },
        num_generations: 2,
        filtered: 0,
        thumbnail: expect.stringMatching(/^http.*\.webp$/) as string,
        created_at: '2026-09-21T14:13:20.000Z',
      },
    ]);
  });

  it('has only what the query wants', async () => {
    await drawTask(api, first);
    expect(await idsOf('?kind=generation')).toEqual([generation]);
    expect(await idsOf('?kind=prompt')).toEqual([second, prompts, first]);
    expect(await idsOf(`?finetune=${finetunes[1]}`)).toEqual([second, prompts]);
    expect(await idsOf('?status=succeeded')).toEqual([first]);
    await api.dataSource.query(`UPDATE tasks SET end_user = 'customer-7' WHERE id = $1`, [generation]);
    expect(await idsOf('?user=customer-7')).toEqual([generation]);
    expect(await idsOf('?user=customer')).toEqual([]);
    expect(await idsOf('?created_after=2026-09-21T14:13:20.000Z&created_before=2026-09-21T14:13:22Z')).toEqual([
      generation,
    ]);
    expect(await idsOf(`?finetune=${newIdentifier()}`)).toEqual([]);
    const refused = await list<ProblemJson>('?finetune=x&kind=training');
    expect([refused.status, refused.body.errors?.map(({ parameter }) => parameter)]).toEqual([
      400,
      ['kind', 'finetune'],
    ]);
  });

  it('has pages, which go on between two of one moment, and after one that was deleted', async () => {
    const found: string[] = [];
    for (let query: string | undefined = '?limit=1'; query !== undefined;) {
      const { body, headers }: Reply<DrawingDto[]> = await list(query);
      found.push(...body.map(({ id }) => id));
      query = /\?[^>]*/.exec(headers.get('link') ?? '')?.[0];
      if (body[0].id === generation) await api.request('DELETE', `/v1/sd/text-to-image/${generation}`, { key });
    }
    expect(found).toEqual([second, prompts, generation, first]);
    expect(await idsOf(`?after=${second}`)).toEqual([prompts, first]);
    expect((await list(`?after=${newIdentifier()}`)).status).toBe(400);
  });

  it('has no training, and nothing of another caller', async () => {
    const training = { id: newIdentifier(), kind: 'training', model: 'shapes', cost: 1, status: 'queued' } as const;
    await api.dataSource.manager.insert(Task, { ...training, ownerId: key.id, createdAt: new Date() });
    expect(await idsOf()).toHaveLength(4);
    const other = await api.createKey();
    expect((await api.request('GET', '/v1/drawings', { key: other })).body).toEqual([]);
    expect((await api.request('GET', `/v1/drawings?after=${first}`, { key: other })).status).toBe(400);
  });
});

describe('of 100,000 drawings', () => {
  const key = ofSuite(() => api.createKey());
  const id = `'m' || lpad(i::text, 23, '0')`;

  beforeAll(async () => {
    await api.dataSource.query(
      `WITH ${manyTasks(100_000, { id, owner: '$1', status: `'succeeded'`, createdAt: `now() - i * interval '1 second'` })} SELECT`,
      [key.id],
    );
    await api.dataSource.query('ANALYZE');
  });

  it.each([
    ['the first page', '?limit=50', 50],
    ['one in the middle', `?limit=50&after=m${'50000'.padStart(23, '0')}`, 50],
    ['those that failed, which are none', '?status=failed', 0],
    ['those of a Fine-Tune, which are none', `?finetune=${'x'.repeat(24)}`, 0],
    ['those before them all', '?created_before=2020-01-01', 0],
  ])('%s is read without the others', async (_, query, count) => {
    const read = await rowsRead(api.dataSource, 'tasks', async () => {
      const { body } = await api.request<DrawingDto[]>('GET', `/v1/drawings${query}`, { key });
      expect(body).toHaveLength(count);
    });
    expect(read).toBeLessThan(2 * count + 10);
  });
});
