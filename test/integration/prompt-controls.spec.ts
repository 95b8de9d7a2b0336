import { Task } from '@app/domain';
import type { MetricsDto, PromptStatusDto, TerminatedPromptDto, WebhookDeliveryDto } from '@app/domain/http';
import { Tasks } from '@app/tasks';
import { startTestApi } from '../support/api';
import { claimTask } from '../support/claim-task';
import { drawingOf } from '../support/drawing-rows';
import { drawTask, makeFinetune, makePrompts, type ProblemJson, type PromptJson } from '../support/factories';
import { ofSuite, ofTest } from '../support/of-suite';
import { receiversOfSuite } from '../support/receiver';
import { until } from '../support/until';

const api = ofSuite(startTestApi);
const receiver = receiversOfSuite();
const key = ofTest(() => api.createKey());
let finetuneId: string;
let path: string;

beforeEach(async () => {
  finetuneId = (await makeFinetune(api, key)).id;
  path = `/v1/finetunes/${finetuneId}/prompts`;
});

const post = <T = ProblemJson>(to: string, body?: unknown) => api.request<T>('POST', to, { key, body });
const statusOf = async (id: string) =>
  (await api.request<PromptStatusDto>('GET', `${path}/${id}/status`, { key })).body;
const make = async (body: object = {}) =>
  (await makePrompts(api, key, finetuneId, [{ prompt: 'a robot', ...body }]))[0];

describe('a Prompt', () => {
  const controls = { num_generations: 3, scheduler: 'ddim', output_format: 'webp', prompt_weighting: true };

  it('is drawn with the controls of a Generation, which its status tells', async () => {
    const { id, ...record } = await make({ ...controls, seed: 7 });
    const { numImages, scheduler, outputFormat, promptWeighting } = await drawingOf(api.dataSource.manager, id);
    expect([numImages, scheduler, outputFormat, promptWeighting]).toEqual([3, 'ddim', 'webp', true]);
    expect(await statusOf(id)).toMatchObject({ ...controls, control: [], metrics: null });
    const plain = await make();
    expect(Object.keys(record)).toEqual(Object.keys(plain).filter((name) => name !== 'id'));
    expect(await statusOf(plain.id)).toMatchObject({
      num_generations: 1,
      output_format: 'png',
      prompt_weighting: false,
    });
  });

  it('has as many pictures as it asked for, and a thumbnail', async () => {
    const { id } = await make({ num_generations: 3 });
    await drawTask(api, id);
    const { body } = await api.request<PromptJson>('GET', `${path}/${id}`, { key });
    expect(new Set(body.images).size).toBe(3);
    expect((await statusOf(id)).thumbnail).toMatch(/^http.*\.webp$/);
  });

  it('of a Style has them too, and shows of them what a Prompt shows', async () => {
    const [source] = await makePrompts(api, key, finetuneId);
    const styles = [{ id: source.id, name: 'night' }];
    const { body: collection } = await post<{ id: string }>('/v1/prompts/collections', { name: 'scenes', styles });
    const { status, body } = await post<PromptJson[]>(`/v1/finetunes/${finetuneId}/styles`, [
      { id: collection.id, seed: 7, ...controls },
    ]);
    expect([status, Object.keys(body[0])]).toEqual([201, ['id', 'error_message', 'images', 'created_at', 'seed']]);
    expect(await statusOf(body[0].id)).toMatchObject(controls);
  });

  it.each([
    [{ num_generations: 9 }, 400, 'ValidationFailed', '/1/num_generations'],
    [{ scheduler: 'fast' }, 400, 'ValidationFailed', '/1/scheduler'],
    [{ output_format: 'gif' }, 400, 'ValidationFailed', '/1/output_format'],
    [{ prompt_weighting: 1 }, 400, 'ValidationFailed', '/1/prompt_weighting'],
    [
      { control: [{ image: 'https://example.com/a.png', model: 'canny' }] },
      422,
      'ControlNotInstalled',
      '/1/control/0/model',
    ],
  ])('is refused as a Generation is: %j', async (wrong, status, code, pointer) => {
    const reply = await post(path, [{ prompt: 'a robot' }, { prompt: 'a robot', ...wrong }]);
    expect([reply.status, reply.body.code, reply.body.errors?.[0].pointer]).toEqual([status, code, pointer]);
  });
});

describe('a canceled Prompt', () => {
  it('stays canceled, with its status in the answer', async () => {
    const { id } = await make();
    const { status, body } = await post<TerminatedPromptDto>(`${path}/${id}/cancel`);
    expect([status, body]).toMatchObject([201, { id, prompt: 'a robot', status: 'canceled', images: [] }]);
    const { queue_seconds, compute_seconds, total_seconds } = body.metrics!;
    expect([queue_seconds, compute_seconds]).toEqual([total_seconds, 0]);
    expect((await post(`${path}/${id}/cancel`)).body).toEqual(body);
    expect((await api.request('GET', `${path}/${id}`, { key })).status).toBe(200);
  });

  it('cannot have been drawn before', async () => {
    const { id } = await make();
    await drawTask(api, id);
    const { status, body } = await post(`${path}/${id}/cancel`);
    expect([status, body.code, body.detail]).toEqual([
      409,
      'PromptTerminated',
      'The Prompt has succeeded and cannot be canceled.',
    ]);
  });
});

it('the webhook log of a Prompt shows its deliveries, which may be tried again', async () => {
  const { url, next } = await receiver();
  const { id } = await make({ webhook: url });
  const log = async () => (await api.request<WebhookDeliveryDto[]>('GET', `${path}/${id}/deliveries`, { key })).body;
  expect(await log()).toEqual([]);
  await post(`${path}/${id}/cancel`);
  const first = await next(1);
  const [delivery] = await until(async () => {
    const found = await log();
    return found[0]?.status === 'delivered' && found;
  }, 'it is delivered');
  expect((await post(`${path}/${id}/deliveries/${delivery.id}/redeliver`)).status).toBe(201);
  const second = await next(2);
  expect([second.headers['webhook-id'], second.body]).toEqual([first.headers['webhook-id'], first.body]);
  const other = await make();
  expect((await post(`${path}/${other.id}/deliveries/${delivery.id}/redeliver`)).status).toBe(404);
});

describe('metrics', () => {
  const times = async (id: string, created: string, started: string | null, completed: string) =>
    api.dataSource.manager.update(
      Task,
      { id },
      {
        createdAt: new Date(`2026-11-20T09:00:${created}Z`),
        startedAt: started === null ? null : new Date(`2026-11-20T09:00:${started}Z`),
        completedAt: new Date(`2026-11-20T09:00:${completed}Z`),
      },
    );
  const draw = async () =>
    (await post<{ id: string; metrics: MetricsDto | null }>('/v1/sd/text-to-image', { prompt: 'a star' })).body;
  const metricsOf = async (id: string) =>
    (await api.request<{ metrics: MetricsDto }>('GET', `/v1/sd/text-to-image/${id}`, { key })).body.metrics;
  const used = async () =>
    (await api.request<{ compute_seconds: number }[]>('GET', '/v1/usage', { key })).body[0].compute_seconds;

  it('tell how long a Generation waited, was computed and took in all, once it has terminated', async () => {
    const { id, metrics } = await draw();
    expect(metrics).toBeNull();
    await drawTask(api, id, 3.7064);
    await times(id, '00.000', '01.250', '06.500');
    expect(await metricsOf(id)).toEqual({ queue_seconds: 1.25, compute_seconds: 3.706, total_seconds: 6.5 });
    expect(await used()).toBe(3.706);
    await times(id, '00.000', null, '06.500');
    expect((await metricsOf(id)).queue_seconds).toBe(6.5);
  });

  it('count what a canceled one had used, as its usage does', async () => {
    const { id } = await draw();
    const task = await claimTask(api.dataSource.manager, id);
    await post(`/v1/sd/text-to-image/${id}/cancel`);
    expect((await metricsOf(id)).compute_seconds).toBe(0);
    await api.app.get(Tasks).chargeLost(task, 0.5);
    expect([(await metricsOf(id)).compute_seconds, await used()]).toEqual([0.5, 0.5]);
  });

  it('have no compute with a sandbox key, as its usage has none', async () => {
    const { id } = await draw();
    await drawTask(api, id, 3);
    await api.dataSource.manager.update(Task, { id }, { sandbox: true });
    expect((await metricsOf(id)).compute_seconds).toBe(0);
  });
});

describe('metadata', () => {
  it.each([[['a', 1]], ['user-42'], [''], [0], [-0.5], [false], [{ b: 1, a: [null] }]])(
    'of any kind is kept as it was sent: %j',
    async (metadata) => {
      const { id } = await make({ metadata });
      const { body: generation } = await post<{ id: string }>('/v1/sd/text-to-image', { prompt: 'a star', metadata });
      const finetune = await makeFinetune(api, key, { metadata });
      const of = async (record: string) => (await api.request<{ metadata: unknown }>('GET', record, { key })).text;
      const kept = `"metadata":${JSON.stringify(metadata)}`;
      for (const record of [`${path}/${id}`, path, `/v1/sd/text-to-image/${generation.id}`, '/v1/sd/text-to-image'])
        expect(await of(record)).toContain(kept);
      expect(await of(`/v1/finetunes/${finetune.id}`)).toContain(kept);
      const change = { key, body: { metadata } };
      expect((await api.request('PATCH', `/v1/finetunes/${finetuneId}`, change)).text).toContain(kept);
    },
  );

  it('of null is none', async () => {
    expect((await make({ metadata: null })).metadata).toBeNull();
  });

  it('that is a number which no double holds is refused', async () => {
    const raw = '{"prompt":"a star","metadata":12345678901234567890}';
    const headers = { 'content-type': 'application/json' };
    const { status, body } = await api.request<ProblemJson>('POST', '/v1/sd/text-to-image', { key, raw, headers });
    expect([status, body.errors?.[0].pointer]).toEqual([400, '/metadata']);
  });
});
