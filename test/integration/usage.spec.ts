import { DailyUsage } from '@app/domain';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import type { ProblemJson } from '../support/factories';
import { drawTask, failTask, makeFinetune, makePrompts } from '../support/factories';

describe('usage', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    key = await api.createKey();
  });
  afterAll(() => api.close());

  const usage = (query = '') => api.request<object[] & ProblemJson>('GET', `/v1/usage${query}`, { key });
  const today = () => new Date().toISOString().slice(0, 10);

  it('is empty for a key that has drawn nothing', async () => {
    expect(await usage()).toMatchObject({ status: 200, body: [] });
  });

  it('counts drawn pictures, but not failed ones or another caller’s', async () => {
    const { id } = await makeFinetune(api, key, { model: 'shapes' });
    const prompts = await makePrompts(api, key, id, [{ prompt: 'robot', steps: 20 }, { prompt: 'robot' }]);
    const generation = (body: object) =>
      api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'x', ...body } });
    const { body: drawn } = await generation({ num_generations: 3, steps: 10, model: 'sd1.5' });
    const day = today();
    await drawTask(api, prompts[0].id, 1.25);
    await drawTask(api, drawn.id, 0.1);
    await failTask(api, prompts[1].id, 'no');
    const stranger = await api.createKey();
    const [theirs] = await makePrompts(api, stranger, (await makeFinetune(api, stranger)).id);
    await drawTask(api, theirs.id);

    // The test may run across midnight: then there are two days.
    const days = day === today() ? [{ day, images: 4, steps: 50, compute_seconds: 1.35 }] : undefined;
    if (days) expect((await usage()).body).toEqual(days);
    expect((await usage('?group_by=model')).body).toEqual([
      { model: 'sd1.5', images: 3, steps: 30, compute_seconds: 0.1 },
      { model: 'shapes', images: 1, steps: 20, compute_seconds: 1.25 },
    ]);
    expect((await usage('?group_by=finetune')).body).toEqual([
      { finetune: id, images: 1, steps: 20, compute_seconds: 1.25 },
      { finetune: null, images: 3, steps: 30, compute_seconds: 0.1 },
    ]);
  });

  it('sums the days of the range, newest first', async () => {
    const row = { ownerId: key.id, model: 'm', finetuneId: '', images: 1, steps: 2, computeSeconds: 0.1 };
    const days = ['2026-02-27', '2026-02-28', '2026-03-01', '2026-03-02'];
    await api.dataSource.manager.insert(
      DailyUsage,
      days.map((day) => ({ ...row, day })),
    );
    await api.dataSource.manager.insert(DailyUsage, { ...row, day: '2026-03-01', model: 'n', computeSeconds: 0.2 });
    const between = '?from=2026-02-28&to=2026-03-01';
    expect((await usage(between)).body).toEqual([
      { day: '2026-03-01', images: 2, steps: 4, compute_seconds: 0.3 },
      { day: '2026-02-28', images: 1, steps: 2, compute_seconds: 0.1 },
    ]);
    expect((await usage(`${between}&group_by=model`)).body).toEqual([
      { model: 'm', images: 2, steps: 4, compute_seconds: 0.2 },
      { model: 'n', images: 1, steps: 2, compute_seconds: 0.2 },
    ]);
  });

  it.each([
    ['?from=yesterday', 'from'],
    ['?from=2026-02-30', 'from'],
    ['?from=2026-03-02&to=2026-03-01', 'from'],
    ['?to=2026-3-1', 'to'],
    ['?to=0000-01-01', 'to'],
    ['?group_by=key', 'group_by'],
    ['?group_by=day&group_by=model', 'group_by'],
  ])('rejects %s and names the parameter', async (query, parameter) => {
    const { status, body } = await usage(query);
    expect([status, body.code, body.errors?.map((error) => error.parameter)]).toEqual([
      400,
      'ValidationFailed',
      [parameter],
    ]);
  });
});
