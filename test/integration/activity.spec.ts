import { startTestApi } from '../support/api';
import { drawTask, failTask, makeFinetune, makePrompts, type ProblemJson } from '../support/factories';
import { ofSuite } from '../support/of-suite';

interface Row {
  time: string;
  images: number;
  key?: string;
}

describe('Activity', () => {
  const api = ofSuite(startTestApi);
  const [operator, key, sandbox] = [
    ofSuite(() => api.createKey({ scopes: ['admin'] })),
    ofSuite(() => api.createKey()),
    ofSuite(() => api.createKey()),
  ];
  const activity = async (query = '', caller = operator) =>
    api.request<Row[]>('GET', `/v1/activity${query}`, { key: caller });
  let finetune: string;

  beforeAll(async () => {
    const generate = async (body: object) =>
      (await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'x', ...body } })).body
        .id;
    await drawTask(api, await generate({ num_generations: 3, user: 'ann' }), 2);
    await failTask(api, await generate({}), 'no');
    await api.request('POST', `/v1/sd/text-to-image/${await generate({})}/cancel`, { key });
    finetune = (await makeFinetune(api, operator, { model: 'shapes' })).id;
    const [prompt] = await makePrompts(api, operator, finetune);
    await drawTask(api, prompt.id, 1);
    await api.dataSource.query(
      `INSERT INTO tasks (id, kind, owner_id, model, cost, sandbox, status, created_at, completed_at)
       VALUES ('of a sandbox', 'generation', $1, 'shapes', 1, true, 'succeeded', now(), now()),
         ('too old', 'generation', $1, 'shapes', 1, false, 'succeeded', now() - interval '9 days', now() - interval '9 days')`,
      [sandbox.id],
    );
  });

  it.each(['hour', 'day'])('counts what ended in each %s, over all keys but those of the sandbox', async (per) => {
    const { body } = await activity(`?per=${per}`);
    const sum = { images: 0, succeeded: 0, failed: 0, canceled: 0, compute_seconds: 0 };
    for (const row of body) {
      for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += Number((row as never)[name]);
      expect(row.time).toMatch(per === 'hour' ? /:00:00\.000Z$/ : /T00:00:00\.000Z$/);
    }
    // A month has what is too old for hours.
    const old = per === 'day' ? 1 : 0;
    expect(sum).toEqual({ images: 4, succeeded: 2 + old, failed: 1, canceled: 1, compute_seconds: 3 });
  });

  it.each([
    ['key', () => [operator.id, key.id]],
    ['user', () => ['ann', null]],
    ['model', () => ['sd1.5', 'shapes']],
    ['finetune', () => [finetune, null]],
  ] as const)('is told apart by %s', async (group, wanted) => {
    const { body } = await activity(`?group_by=${group}`);
    expect(new Set(body.map((row) => row[group as 'key']))).toEqual(new Set(wanted()));
  });

  it('has no more rows than a page can show, and leaves none out in silence', async () => {
    await api.dataSource.query(
      `INSERT INTO tasks (id, kind, owner_id, model, cost, status, created_at, completed_at, end_user)
       SELECT 'many' || i, 'training', $1, 'shapes', 1, 'succeeded', now(), now(), 'user' || i
       FROM generate_series(1, 20001) AS i`,
      [key.id],
    );
    const refused = await api.request<ProblemJson>('GET', '/v1/activity?group_by=user', { key: operator });
    expect([refused.status, refused.body.errors]).toEqual([
      400,
      [{ parameter: 'group_by', message: 'leads to more than 20000 rows; ask for days, or leave it out' }],
    ]);
    expect((await activity()).status).toBe(200);
    await api.dataSource.query(`DELETE FROM tasks WHERE id LIKE 'many%'`);
  });

  it('is for the scope admin', async () => {
    expect([(await activity('', key)).status, (await activity('?group_by=day')).status]).toEqual([403, 400]);
  });
});
