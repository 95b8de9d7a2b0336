import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Finetune, Task, Training } from '@app/domain';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { Tasks, trainedWeightsKey, Trainings } from '@app/tasks';
import { RetentionService } from '../../apps/api/src/files/retention.service';
import { FinetunesService } from '../../apps/api/src/finetunes/finetunes.service';
import { readSafetensorsHeader } from '../../libs/diffusion/src/safetensors/safetensors-header';
import { BufferSource } from '../../libs/diffusion/src/tensor/byte-source';
import { startTestApi, type TestKey } from '../support/api';
import { openEvents } from '../support/event-source';
import { type FinetuneJson, makePrompts, type ProblemJson } from '../support/factories';
import { ofSuite, ofTest } from '../support/of-suite';
import { receiversOfSuite } from '../support/receiver';
import { until } from '../support/until';

const lora = join(__dirname, '..', 'golden', 'models', 'lora', 'zwx-robot-kohya.safetensors');
/** The same as a training here makes it. */
const trained = lora.replace('kohya', 'diffusers');
const { training: ofModel } = JSON.parse(readFileSync(join('models', 'shapes', 'darkroom.json'), 'utf8')) as {
  training: { steps: number };
};
const stepsOfModel = ofModel.steps;
const urls = (count = 4) => Array.from({ length: count }, (_, i) => `https://pictures.example/${i}.png`);

interface TrainedJson extends FinetuneJson {
  training: Record<string, unknown> | null;
  prompts: string[];
}

describe('The training of a Fine-Tune', () => {
  const api = ofSuite(() => startTestApi({ MAX_TRAININGS_PER_KEY: '1' }));
  const startReceiver = receiversOfSuite();
  const key = ofTest(() => api.createKey());
  const anything = (): unknown => expect.anything() as unknown;
  // Claims take whichever is next.
  afterEach(() =>
    api.dataSource.query(`UPDATE tasks SET status = 'canceled', completed_at = now() WHERE completed_at IS NULL`),
  );

  const post = <T = TrainedJson>(path: string, body?: unknown, owner: TestKey = key) =>
    api.request<T & ProblemJson>('POST', `/v1/finetunes${path}`, { key: owner, body });
  const train = async (body: object = {}, owner = key) => {
    const reply = await post('', { name: 'robot', images_url: urls(), ...body }, owner);
    expect([reply.status, reply.body.detail]).toEqual([201, undefined]);
    return reply.body;
  };
  const find = async (id: string) => (await api.request<TrainedJson>('GET', `/v1/finetunes/${id}`, { key })).body;
  const prompt = async (id: string, promptId: string, more = '') =>
    (
      await api.request<{ error_message: string | null; status: string }>(
        'GET',
        `/v1/finetunes/${id}/prompts/${promptId}${more}`,
        { key },
      )
    ).body;
  const taskOf = (id: string) => api.dataSource.manager.findOneByOrFail(Task, { id });
  /** Claims as a worker does, until it has this one. */
  const claim = async (id: string) => {
    const claimed = await until(
      async () => (await api.app.get(Trainings).claim({ undrawable: true })) ?? (await taskOf(id)),
      'the training is claimed',
    );
    expect(claimed).toMatchObject({ id, status: 'processing' });
    return claimed;
  };
  const finish = async (id: string) => {
    const task = await claim(id);
    const bytes = await readFile(trained);
    const hash = createHash('sha256').update(bytes).digest('hex');
    const weightsKey = trainedWeightsKey(task, hash);
    await api.app.get<ImageStorage>(IMAGE_STORAGE).write(weightsKey, bytes);
    const { body: models } = await api.request<{ name: string; hash: string }[]>('GET', '/v1/models', { key });
    const base = `shapes@${models.find(({ name }) => name === 'shapes')?.hash}`;
    const file = {
      kind: 'lora' as const,
      vectors: null,
      note: null,
      unmatched: 0,
      scale: 1,
      base,
      hash,
      bytes: bytes.length,
    };
    const weights = { ...file, key: weightsKey };
    expect(await api.app.get(Trainings).settle(task, { weights, computeSeconds: 61.5, note: null })).toBe(true);
    return { task, bytes, weights };
  };

  it('is accepted at once with all that was asked for', async () => {
    const body = await train({ token: 'ohwx', title: 'Mine', metadata: { a: 1 }, steps: 300, seed: 7 });
    expect(body).toMatchObject({
      name: 'robot',
      token: 'ohwx',
      title: 'Mine',
      status: 'queued',
      weights: null,
      note: null,
      user: null,
    });
    expect(body.training).toEqual({
      images: 4,
      steps: 300,
      step: 0,
      seed: 7,
      started_at: null,
      completed_at: null,
      compute_seconds: 0,
    });
    expect(await find(body.id)).toEqual(body);
    const { body: list } = await api.request<unknown[]>('GET', '/v1/finetunes', { key });
    expect(list).toEqual([body]);
    expect(Object.keys(body)).not.toContain('webhook');
  });

  it('has the steps of its model where nobody says how many, and a seed', async () => {
    const { training } = await train({ images_url: urls(100) });
    expect(training).toMatchObject({ images: 100, steps: stepsOfModel, seed: anything() as number });
  });

  it.each([
    [
      'captions without pictures',
      { images_url: undefined, captions: ['x'] },
      422,
      'FineTuneImagesMissing',
      '/images_url',
    ],
    ['steps without pictures', { images_url: undefined, steps: 100 }, 422, 'FineTuneImagesMissing', '/images_url'],
    ['no pictures', { images_url: [] }, 400, 'FineTuneImagesMissing', '/images_url'],
    ['three pictures', { images_url: urls(3) }, 400, 'FineTuneImagesNotEnough', '/images_url'],
    ['one picture four times', { images_url: [...urls(3), ...urls(3)] }, 400, 'FineTuneImagesNotEnough', '/images_url'],
    ['101 pictures', { images_url: urls(101) }, 400, 'ValidationFailed', '/images_url'],
    ['captions of some', { captions: ['a', 'b'] }, 422, 'FineTuneCaptionsMismatch', '/captions'],
    [
      'a caption of too many words',
      { captions: ['a', 'b', 'robot '.repeat(100), 'd'] },
      422,
      'PromptTooLong',
      '/captions/2',
    ],
    ['an empty caption', { captions: ['a', 'b', ' ', 'd'] }, 400, 'ValidationFailed', '/captions/2'],
    ['49 steps', { steps: 49 }, 400, 'ValidationFailed', '/steps'],
    [
      'a Prompt without the name',
      { prompts: [{ prompt: 'a dog' }] },
      422,
      'PromptDoesNotIncludeFineTuneName',
      '/prompts/0/prompt',
    ],
    ['a Prompt without a text', { prompts: [{}] }, 400, 'PromptMissing', '/prompts/0/prompt'],
    ['an unknown Style', { styles: [{ id: 'x' }] }, 422, 'StyleNotFound', '/styles/0/id'],
    [
      'a word of other services',
      { instance_prompt: 'a photo of zwx robot' },
      400,
      'ValidationFailed',
      '/instance_prompt',
    ],
  ])('is refused for %s, and leaves nothing', async (_, change, status, code, pointer) => {
    const { body, status: got } = await post('', { name: 'robot', images_url: urls(), ...change });
    expect([got, body.code, body.errors?.[0].pointer]).toEqual([status, code, pointer]);
    expect(await api.dataSource.manager.countBy(Finetune, { ownerId: key.id })).toBe(0);
    expect(await api.dataSource.manager.countBy(Task, { ownerId: key.id })).toBe(0);
  });

  it.each([
    ['input_images', 'images_url'],
    ['images_data_url', 'images_url'],
    ['trigger_word', 'token'],
    ['callback', 'webhook'],
    ['max_train_steps', 'steps'],
  ])('says what the field %s of other services is called here', async (theirs, ours) => {
    const { body } = await post('', { name: 'robot', images_url: urls(), [theirs]: 'x' });
    expect(body.errors?.[0]).toEqual({
      pointer: `/${theirs}`,
      message: `is not a known field; it is called "${ours}" here`,
    });
  });

  it('makes its Prompts wait, and lets them be drawn with the weights', async () => {
    const body = await train({ prompts: [{ prompt: 'a robot', seed: 3 }, { prompt: 'a red robot' }] });
    expect(body.prompts).toHaveLength(2);
    const [{ id: later }] = await makePrompts(api, key, body.id);
    const ids = [...body.prompts, later];
    expect(await prompt(body.id, later, '/status')).toMatchObject({ status: 'queued', queue_position: null });
    expect(await api.app.get(Tasks).claim({})).toBeUndefined();
    const { weights } = await finish(body.id);
    expect(await find(body.id)).toMatchObject({ status: 'ready', weights: { kind: 'lora', sha256: weights.hash } });
    const drawn = [];
    for (let task = await api.app.get(Tasks).claim({}); task; task = await api.app.get(Tasks).claim({}))
      drawn.push(task);
    expect(drawn.map(({ id }) => id).sort()).toEqual([...ids].sort());
    for (const task of drawn) expect(task).toMatchObject({ weightsHash: weights.hash, weightsScale: 1 });
    expect((await find(body.id)).prompts).toEqual(body.prompts);
  });

  it('that fails or is canceled fails its Prompts with a sentence, and takes no more of them', async () => {
    const failed = await train({ prompts: [{ prompt: 'a robot' }] });
    const task = await claim(failed.id);
    await api.app.get(Tasks).settle(task, { status: 'failed', error: 'The loss rose.' });
    expect(await find(failed.id)).toMatchObject({ status: 'failed', error_message: 'The loss rose.', weights: null });
    expect(await prompt(failed.id, failed.prompts[0])).toMatchObject({
      error_message: 'The training of the Fine-Tune failed: The loss rose.',
    });
    const refused = await post(`/${failed.id}/prompts`, [{ prompt: 'a robot' }]);
    expect([refused.status, refused.body.code]).toEqual([422, 'FineTuneNotTrained']);

    const canceled = await train({ prompts: [{ prompt: 'a robot' }] });
    const reply = await post(`/${canceled.id}/cancel`);
    expect([reply.status, reply.body.status]).toEqual([201, 'canceled']);
    expect(await prompt(canceled.id, canceled.prompts[0])).toMatchObject({
      error_message: 'The training of the Fine-Tune was canceled.',
    });
    expect((await post(`/${canceled.id}/cancel`)).body.status).toBe('canceled');
    expect((await post(`/${failed.id}/cancel`)).body.code).toBe('TrainingTerminated');
  });

  it('is canceled while it is trained, and a late result changes nothing', async () => {
    const { id } = await train();
    const task = await claim(id);
    expect((await find(id)).status).toBe('training');
    expect(await api.app.get(Trainings).recordProgress(task, { step: 40, computeSeconds: 12 }, true)).toBe(true);
    expect((await find(id)).training).toMatchObject({ step: 40, compute_seconds: 12 });
    await post(`/${id}/cancel`);
    expect(await api.app.get(Trainings).recordProgress(task, { step: 50, computeSeconds: 13 }, true)).toBe(false);
    const { body: usage } = await api.request<{ compute_seconds: number; images: number }[]>('GET', '/v1/usage', {
      key,
    });
    expect(usage).toMatchObject([{ compute_seconds: 12, images: 0 }]);
    const weights = {
      kind: 'lora',
      vectors: null,
      note: null,
      unmatched: 0,
      scale: 1,
      base: 'b',
      hash: 'h',
      bytes: 1,
      key: 'k',
    } as const;
    expect(await api.app.get(Trainings).settle(task, { weights, computeSeconds: 1, note: null })).toBe(false);
    expect(await find(id)).toMatchObject({ status: 'canceled', weights: null });
  });

  it('sends its place, its steps with their loss, and its end as events', async () => {
    const { id } = await train();
    const stream = await openEvents(`${api.baseUrl}/v1/finetunes/${id}/events`, key.token);
    expect(await stream.next()).toMatchObject({ event: 'queued', data: { position: 0 } });
    const task = await claim(id);
    expect(await stream.next()).toMatchObject({ event: 'started', data: { step: 0, total: stepsOfModel } });
    await api.dataSource.query(`SELECT pg_notify('darkroom_progress', $1)`, [
      JSON.stringify({ id, attempt: task.attempt, step: 3, total: 500, loss: 0.25, preview: 'AAAA' }),
    ]);
    expect(await stream.next()).toMatchObject({
      event: 'progress',
      data: { step: 3, total: 500, loss: 0.25, preview: 'data:image/jpeg;base64,AAAA' },
    });
    await api.app.get(Tasks).settle(task, { status: 'failed', error: 'No.' });
    expect(await stream.next()).toMatchObject({ event: 'terminated', data: { id, status: 'failed' } });
    expect(await stream.next()).toBeUndefined();
  });

  it('says at once to who follows it late that it is trained and how far it is, and so when it is begun again', async () => {
    const { id } = await train();
    const first = await claim(id);
    await api.app.get(Trainings).recordProgress(first, { step: 40, computeSeconds: 12 }, true);
    const events = `${api.baseUrl}/v1/finetunes/${id}/events`;
    const stream = await openEvents(events, key.token);
    const started = { event: 'started', data: { step: 40, total: stepsOfModel } };
    expect(await stream.next()).toEqual({ ...started, id: '1-0' });
    await api.app.get(Tasks).release(first);
    expect(await stream.next()).toMatchObject({ event: 'queued' });
    await claim(id);
    expect(await stream.next()).toEqual({ ...started, id: '2-0' });
    // It goes on from a checkpoint before the last step of which its record was told.
    await api.dataSource.query(`SELECT pg_notify('darkroom_progress', $1)`, [
      JSON.stringify({ id, attempt: 2, step: 31, total: 500, loss: 0.25 }),
    ]);
    expect(await stream.next()).toMatchObject({ event: 'progress', data: { step: 31, preview: null }, id: '2-31' });
    const again = await openEvents(events, key.token, { 'last-event-id': '2-0' });
    await post(`/${id}/cancel`);
    for (const each of [stream, again]) expect(await each.next()).toMatchObject({ event: 'terminated' });
  });

  it('has no events where there is none', async () => {
    const { body } = await post('', { name: 'robot' });
    const reply = await api.request<ProblemJson>('GET', `/v1/finetunes/${body.id}/events`, { key });
    expect([reply.status, reply.body.code]).toEqual([404, 'TrainingNotFound']);
    expect((await post(`/${body.id}/cancel`)).body.code).toBe('TrainingTerminated');
  });

  it('posts the Fine-Tune to its webhook as GET returns it', async () => {
    const receiver = await startReceiver();
    const { id } = await train({ webhook: receiver.url });
    await finish(id);
    const delivered = JSON.parse((await receiver.next(1)).body) as TrainedJson;
    expect(delivered).toEqual(await find(id));
    expect(delivered).toMatchObject({ status: 'ready', training: { compute_seconds: 61.5, step: stepsOfModel } });
  });

  it('gives weights that can be downloaded, and that others cannot', async () => {
    const { id } = await train();
    const path = `/v1/finetunes/${id}/weights`;
    expect((await api.request<ProblemJson>('GET', path, { key })).body.code).toBe('WeightsNotFound');
    const { bytes, weights } = await finish(id);
    const response = await fetch(`${api.baseUrl}${path}`, { headers: { authorization: `Bearer ${key.token}` } });
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
    expect(response.headers.get('etag')).toBe(`"${weights.hash}"`);
    expect(response.headers.get('content-disposition')).toContain('robot.safetensors');
    expect((await api.request('GET', path, { key: await api.createKey() })).status).toBe(404);
  });

  it('gives weights in the names that ComfyUI reads, where they were trained here', async () => {
    const { id } = await train();
    const { bytes, weights } = await finish(id);
    const get = (query: string, headers = {}) =>
      fetch(`${api.baseUrl}/v1/finetunes/${id}/weights${query}`, {
        headers: { authorization: `Bearer ${key.token}`, ...headers },
      });
    const storage = api.app.get<ImageStorage>(IMAGE_STORAGE);
    const opened = [jest.spyOn(storage, 'read'), jest.spyOn(storage, 'localPath')];
    const known = await get('?dialect=comfy', { 'if-none-match': `"${weights.hash}-comfy"` });
    expect([known.status, known.headers.get('etag')]).toEqual([304, `"${weights.hash}-comfy"`]);
    expect(opened.map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
    const response = await get('?dialect=comfy');
    expect(opened.map(({ mock }) => mock.calls.length)).toEqual([0, 1]);
    expect(response.headers.get('etag')).toBe(`"${weights.hash}-comfy"`);
    expect(response.headers.get('content-disposition')).toContain('robot-comfy.safetensors');
    const { tensors } = readSafetensorsHeader(new BufferSource(Buffer.from(await response.arrayBuffer())));
    const names = [...tensors.keys()];
    expect(names.length).toBe((readSafetensorsHeader(new BufferSource(bytes)).tensors.size / 2) * 3);
    expect(names.every((name) => /^lora_(?:unet|te)_\w+\.(?:lora_(?:down|up)\.weight|alpha)$/.test(name))).toBe(true);
    expect((await get('?dialect=kohya')).status).toBe(400);
    await storage.removeAll(weights.key);
    expect([(await get('')).status, (await get('?dialect=comfy')).status]).toEqual([404, 404]);
  });

  it('is never shown as ready without the weights, also where it ends while its Fine-Tune is read', async () => {
    const { id } = await train();
    const readBefore = await api.dataSource.manager.findOneByOrFail(Finetune, { id });
    const { weights } = await finish(id);
    const [shown] = await api.app.get(FinetunesService).present([readBefore]);
    expect(shown).toMatchObject({ status: 'ready', weights: { sha256: weights.hash } });
  });

  it('keeps weights from being sent meanwhile; they may replace what was trained', async () => {
    const { id } = await train();
    const send = async () =>
      api.request<ProblemJson>('PUT', `/v1/finetunes/${id}/weights`, {
        key,
        raw: await readFile(lora),
        headers: { 'content-type': 'application/octet-stream' },
      });
    const early = await send();
    expect([early.status, early.body.code]).toEqual([409, 'TrainingUnderWay']);
    await post(`/${id}/cancel`);
    expect((await send()).status).toBe(200);
    expect(await find(id)).toMatchObject({ status: 'ready', error_message: null });
    // Uploaded weights come back as they came: not all kinds have a form in diffusers' names.
    const headers = { authorization: `Bearer ${key.token}` };
    const response = await fetch(`${api.baseUrl}/v1/finetunes/${id}/weights`, { headers });
    expect(Buffer.from(await response.arrayBuffer()).equals(await readFile(lora))).toBe(true);
    const inOtherNames = await api.request<ProblemJson>('GET', `/v1/finetunes/${id}/weights?dialect=comfy`, { key });
    expect([inOtherNames.status, inOtherNames.body.code]).toEqual([422, 'DialectUnsupported']);
  });

  it('runs once at a time for a key, and beside one of another key', async () => {
    const [first, second] = [await train(), await train()];
    const other = await api.createKey();
    const { id: others } = await train({}, other);
    const trainings = api.app.get(Trainings);
    const claimed = [];
    for (
      let task = await trainings.claim({ undrawable: true });
      task;
      task = await trainings.claim({ undrawable: true })
    )
      claimed.push(task.id);
    expect(claimed.sort()).toEqual([first.id, others].sort());
    await post(`/${first.id}/cancel`);
    expect((await trainings.claim({ undrawable: true }))?.id).toBe(second.id);
    await post(`/${others}/cancel`, undefined, other);
  });

  it('does not count as a drawing of its key, and is no drawing', async () => {
    const { id } = await train();
    expect(await api.app.get(Tasks).claim({})).toBeUndefined();
    await claim(id);
    expect((await taskOf(id)).place).toBe(-1);
  });

  it('counts among what a key may have waiting', async () => {
    const narrow = await api.createKey({ maxQueued: 2 });
    await train({}, narrow);
    const reply = await post('', { name: 'robot', images_url: urls(), prompts: [{ prompt: 'a robot' }] }, narrow);
    expect([reply.status, reply.body.code]).toEqual([429, 'QueueFull']);
  });

  it('is repeated under an Idempotency-Key, and only once', async () => {
    const headers = { 'idempotency-key': 'train-once' };
    const body = { name: 'robot', images_url: urls(), prompts: [{ prompt: 'a robot' }] };
    const send = () => api.request<TrainedJson>('POST', '/v1/finetunes', { key, body, headers });
    const one = await send();
    const two = await send();
    expect(two.body.id).toBe(one.body.id);
    expect(await api.dataSource.manager.countBy(Task, { ownerId: key.id })).toBe(2);
  });

  it('ends with its Fine-Tune, whose Prompts go too', async () => {
    const { id, prompts } = await train({ prompts: [{ prompt: 'a robot' }] });
    const task = await claim(id);
    expect((await api.request('DELETE', `/v1/finetunes/${id}`, { key })).status).toBe(200);
    for (const row of [id, prompts[0]]) expect(await api.dataSource.manager.countBy(Task, { id: row })).toBe(0);
    expect(await api.dataSource.manager.countBy(Training, { id })).toBe(0);
    expect(await api.app.get(Tasks).heartbeat(task)).toBe(false);
  });

  it('outlives the retention of its key where it succeeded; else its Fine-Tune goes as a failed record does', async () => {
    const kept = await train();
    await finish(kept.id);
    const lost = await train({ prompts: [{ prompt: 'a robot' }] });
    await post(`/${lost.id}/cancel`);
    await api.dataSource.query('UPDATE api_keys SET retention_days = 1 WHERE id = $1', [key.id]);
    await api.dataSource.query(`UPDATE tasks SET completed_at = now() - interval '2 days' WHERE owner_id = $1`, [
      key.id,
    ]);
    for (let round = 0; round < 2; round++) await api.app.get(RetentionService).run();
    expect(await find(kept.id)).toMatchObject({ status: 'ready', training: { step: stepsOfModel } });
    expect((await api.request('GET', `/v1/finetunes/${lost.id}`, { key })).status).toBe(404);
  });

  it('that made nothing keeps its Fine-Tune if that just gets weights while the retention of its key ends', async () => {
    const { id } = await train();
    await post(`/${id}/cancel`);
    await api.dataSource.query('UPDATE api_keys SET retention_days = 1 WHERE id = $1', [key.id]);
    await api.dataSource.query(`UPDATE tasks SET completed_at = now() - interval '2 days' WHERE id = $1`, [id]);
    const upload = api.dataSource.createQueryRunner();
    await upload.startTransaction();
    await upload.query(`UPDATE finetunes SET weights_key = 'finetunes/x', status = 'ready' WHERE id = $1`, [id]);
    await api.app.get(RetentionService).run();
    await upload.commitTransaction();
    await upload.release();
    await api.app.get(RetentionService).run();
    expect(await find(id)).toMatchObject({ id, name: 'robot' });
  });
});
