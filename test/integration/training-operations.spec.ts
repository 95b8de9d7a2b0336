import type { FailureDto, QueueDto } from '@app/domain/http';
import { Tasks, Trainings } from '@app/tasks';
import { WeightsSweeper } from '../../apps/api/src/finetunes/weights.sweeper';
import { startTestApi, type TestKey } from '../support/api';
import type { ProblemJson } from '../support/factories';
import { ofSuite, ofTest } from '../support/of-suite';
import { smallPicture } from '../support/small-picture';

describe('Trainings, for who operates the service', () => {
  const api = ofSuite(() => startTestApi({ PUBLIC_URL: 'https://darkroom.example' }));
  const admin = ofTest(() => api.createKey({ scopes: ['admin'] }));
  const key = ofTest(() => api.createKey());

  const upload = async (owner: TestKey): Promise<{ id: string; url: string }> =>
    (
      await api.request<{ id: string; url: string }>('POST', '/v1/uploads', {
        key: owner,
        raw: await smallPicture('#0f0', 64, 64),
      })
    ).body;
  const elsewhere = Array.from({ length: 4 }, (_, i) => `https://pictures.example/${i}.png`);
  const train = async (owner: TestKey, body: object = {}) =>
    api.request<{ id: string } & ProblemJson>('POST', '/v1/finetunes', {
      key: owner,
      body: { name: 'robot', images_url: elsewhere, ...body },
    });
  const claim = async () => (await api.app.get(Trainings).claim({ undrawable: true }))!;

  it('are among what workers are at, and among what failed', async () => {
    const { body: made } = await train(key, { steps: 60 });
    const task = await claim();
    const queue = await api.request<QueueDto>('GET', '/v1/queue', { key: admin });
    expect(queue.body).toMatchObject({
      processing: 1,
      drawing: [{ id: made.id, kind: 'training', pictures: 0, steps: 60, key_id: key.id }],
    });
    await api.app.get(Tasks).settle(task, { status: 'failed', error: 'No picture could be read.' });
    const failures = await api.request<FailureDto[]>('GET', '/v1/failures', { key: admin });
    expect(failures.body).toMatchObject([
      { id: made.id, kind: 'training', error: 'No picture could be read.', served_by: null },
    ]);
  });

  it('are refused with Prompts that are more than may ever wait beside them', async () => {
    const small = await api.createKey({ maxQueued: 1 });
    const reply = await train(small, { prompts: [{ prompt: 'a robot' }] });
    expect([reply.status, reply.body.code]).toEqual([422, 'TooManyPrompts']);
    expect((await train(small)).status).toBe(201);
  });

  it.each([false, true])('leave their uploads as the key says: kept %s', async (keepTrainingUploads) => {
    const owner = await api.createKey({ keepTrainingUploads });
    const uploads: { id: string; url: string }[] = [];
    for (let i = 0; i < 4; i++) uploads.push(await upload(owner));
    const { status, body: made } = await train(owner, { images_url: uploads.map(({ url }) => url) });
    expect([status, made.detail]).toEqual([201, undefined]);
    const call = async (method: string, path: string) => (await api.request(method, path, { key: owner })).status;
    const found = () => call('GET', `/v1/uploads/${uploads[0].id}`);
    expect(await call('POST', `/v1/finetunes/${made.id}/cancel`)).toBe(201);
    await api.app.get(WeightsSweeper).sweep();
    expect(await found()).toBe(keepTrainingUploads ? 200 : 404);
    expect(await call('DELETE', `/v1/finetunes/${made.id}`)).toBe(200);
    expect(await found()).toBe(404);
  });
});
