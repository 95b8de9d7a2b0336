import { elapsed, FakeService, json, problem } from '../../../test/support/fake-service';
import { createClient } from './client.ts';
import { TrainingFailedError, WaitTimeoutError } from './errors.ts';

const clientOf = (service: FakeService) =>
  createClient({ baseUrl: 'https://darkroom.example/', apiKey: 'dr_key', fetch: service.fetch });
const body = { name: 'robot', images_url: ['a', 'b', 'c', 'd'] };
const finetune = (status: string, error_message: string | null = null) => json({ id: 'f', status, error_message });
const queued = () => finetune('queued');

describe('finetunes.train', () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('waits until it is ready', async () => {
    const service = new FakeService([queued, queued, () => finetune('training'), () => finetune('ready')]);
    const work = clientOf(service).finetunes.train(body);
    await elapsed(work);
    await expect(work).resolves.toMatchObject({ id: 'f', status: 'ready' });
    expect(service.sent.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET', 'GET']);
  });

  it.each([
    ['failed', 'It did not learn.', 'The training of f has failed: It did not learn.'],
    ['canceled', null, 'The training of f was canceled.'],
  ])('throws when it is %s, with the Fine-Tune', async (status, reason, message) => {
    const work = clientOf(new FakeService([queued, () => finetune(status, reason)])).finetunes.train(body);
    await elapsed(work);
    await expect(work).rejects.toBeInstanceOf(TrainingFailedError);
    await expect(work).rejects.toMatchObject({ message, finetune: { id: 'f', status } });
  });

  it('tells what it has made, whose id an aborted signal leaves to cancel it', async () => {
    const service = new FakeService([queued]);
    const controller = new AbortController();
    const made: string[] = [];
    const work = clientOf(service).finetunes.train(body, {
      signal: controller.signal,
      onCreated: ({ id }) => void made.push(id),
    });
    const rejected = expect(work).rejects.toThrow('enough');
    await jest.advanceTimersByTimeAsync(1000);
    expect(made).toEqual(['f']);
    controller.abort(new Error('enough'));
    await rejected;
  });

  it('has one time for both requests, and names the Fine-Tune if there is one when it is over', async () => {
    for (const [answer, id] of [
      [queued, 'f'],
      [() => problem(429, { 'retry-after': '50' }), undefined],
    ] as const) {
      const work = clientOf(new FakeService([answer])).finetunes.train(body, { timeoutMs: 5000 });
      expect(await elapsed(work)).toBeLessThan(5100);
      await expect(work).rejects.toBeInstanceOf(WaitTimeoutError);
      await expect(work).rejects.toMatchObject({ id });
    }
  });
});
