import { elapsed, FakeService, json, problem } from '../../../test/support/fake-service';
import { createClient } from './client.ts';
import { DarkroomError, GenerationFailedError, WaitTimeoutError } from './errors.ts';

const clientOf = (service: FakeService) =>
  createClient({ baseUrl: 'https://darkroom.example/', apiKey: 'dr_key', fetch: service.fetch });
const generation = (status: string) => ({
  id: 'g',
  status,
  completed_at: status === 'queued' ? null : 'now',
  error: null,
});

describe(createClient.name, () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('sends the key, the query and the body', async () => {
    const service = new FakeService([() => json([])]);
    await clientOf(service).generations.list({ limit: 10 });
    await clientOf(service).generations.create({ prompt: 'a circle' });
    expect(service.sent[0]).toMatchObject({
      method: 'GET',
      url: 'https://darkroom.example/v1/sd/text-to-image?limit=10',
      headers: { Authorization: 'Bearer dr_key' },
    });
    expect(service.sent[1]).toMatchObject({
      method: 'POST',
      body: '{"prompt":"a circle"}',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': expect.any(String) as string },
    });
  });

  it('retries after the time that the service says, with the same Idempotency-Key', async () => {
    const service = new FakeService([problem(429, { 'retry-after': '7' }), problem(503), new Error('reset'), json({})]);
    const took = await elapsed(clientOf(service).generations.create({ prompt: 'a circle' }));
    expect(took).toBeGreaterThanOrEqual(7000);
    expect(took).toBeLessThan(9000);
    expect(service.sent).toHaveLength(4);
    expect(new Set(service.sent.map(({ headers }) => headers['Idempotency-Key'])).size).toBe(1);
  });

  it('gives up after the last retry, with the error of the service', async () => {
    const service = new FakeService([() => problem(429)]);
    const work = clientOf(service).models.list();
    await elapsed(work);
    await expect(work).rejects.toMatchObject({
      status: 429,
      code: 'RateLimited',
      requestId: 'abc',
      message: 'Not now.',
    });
    expect(service.sent).toHaveLength(5);
  });

  describe('a POST whose first attempt is still running', () => {
    const running = (retryAfter = '2') => problem(409, { 'retry-after': retryAfter }, 'IdempotencyKeyInUse');

    it('is repeated as the service says, more often than other errors, until the first reply arrives', async () => {
      const service = new FakeService([new Error('reset'), ...Array.from({ length: 8 }, () => running()), json({})]);
      const took = await elapsed(clientOf(service).generations.create({ prompt: 'a circle' }));
      expect(took).toBeGreaterThanOrEqual(16_000);
      expect(service.sent).toHaveLength(10);
      expect(new Set(service.sent.map(({ headers }) => headers['Idempotency-Key'])).size).toBe(1);
    });

    it('fails after a minute, however long the service says to wait', async () => {
      const service = new FakeService([() => running('3600')]);
      const work = clientOf(service).generations.create({ prompt: 'a circle' });
      const took = await elapsed(work);
      expect([took >= 60_000 && took < 61_000, service.sent.length]).toEqual([true, 2]);
      await expect(work).rejects.toMatchObject({ status: 409, code: 'IdempotencyKeyInUse' });
    });

    it('differs from any other conflict', async () => {
      const service = new FakeService([() => problem(409, {}, 'GenerationTerminated')]);
      await expect(clientOf(service).generations.cancel('g')).rejects.toMatchObject({ status: 409 });
      expect(service.sent).toHaveLength(1);
    });
  });

  it('does not repeat a DELETE that may have been executed', async () => {
    const service = new FakeService([new Error('reset')]);
    const work = clientOf(service).generations.delete('g');
    await elapsed(work);
    await expect(work).rejects.toMatchObject({ status: 0 });
    await expect(work).rejects.toBeInstanceOf(DarkroomError);
    expect(service.sent).toHaveLength(1);
  });

  it.each([502, 504])('does not repeat a DELETE after %i of a proxy, but any other request', async (status) => {
    const service = new FakeService([problem(status), problem(404)]);
    await expect(clientOf(service).generations.delete('g')).rejects.toMatchObject({ status });
    expect(service.sent).toHaveLength(1);
    const other = new FakeService([problem(status), json({})]);
    await elapsed(clientOf(other).generations.get('g'));
    expect(other.sent).toHaveLength(2);
  });

  it.each([429, 503])('repeats a DELETE after %i, which the service did not execute', async (status) => {
    const service = new FakeService([problem(status), json({ id: 'g', deleted: true })]);
    const work = clientOf(service).generations.delete('g');
    await elapsed(work);
    await expect(work).resolves.toEqual({ id: 'g', deleted: true });
  });

  it('does not repeat a rejected request', async () => {
    const service = new FakeService([() => problem(422)]);
    await expect(clientOf(service).generations.get('g')).rejects.toMatchObject({ status: 422 });
    expect(service.sent).toHaveLength(1);
  });

  it('understands an error response of another server', async () => {
    const service = new FakeService([
      new Response('<html>', { status: 404, headers: { 'content-type': 'text/html' } }),
    ]);
    const error: unknown = await clientOf(service)
      .generations.get('g')
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ status: 404, code: undefined, errors: [] });
  });

  describe('prompts.wait', () => {
    const missing = () => problem(404, {}, 'PromptNotFound');
    const waiting = () => json({ status: 'queued', completed_at: null });
    const waitOn = async (...answers: (() => Response)[]) => {
      const work = clientOf(new FakeService(answers)).prompts.wait('f', 'p');
      await elapsed(work);
      return work;
    };

    it('says that the Prompt was deleted while it was waited for', async () => {
      const work = waitOn(waiting, missing);
      await expect(work).rejects.toBeInstanceOf(DarkroomError);
      const message = 'p was deleted while it was waited for.';
      await expect(work).rejects.toMatchObject({ message, status: 404, code: 'PromptNotFound', requestId: 'abc' });
    });

    it('says what the service says of one that was not there at first', async () => {
      await expect(waitOn(missing)).rejects.toMatchObject({ message: 'Not now.', code: 'PromptNotFound' });
    });
  });

  describe('generate', () => {
    it('polls less and less often until the pictures are ready', async () => {
      const waiting = Array<() => Response>(12).fill(() => json(generation('queued')));
      const service = new FakeService([...waiting, () => json(generation('succeeded'))]);
      const asked: number[] = [];
      const client = createClient({
        baseUrl: 'https://darkroom.example',
        apiKey: 'dr_key',
        fetch: (url, init) => {
          asked.push(Date.now());
          return service.fetch(url, init);
        },
      });
      const work = client.generate({ prompt: 'a circle' });
      await elapsed(work);
      await expect(work).resolves.toMatchObject({ status: 'succeeded' });
      const gaps = asked.slice(2).map((at, index) => at - asked[index + 1]);
      expect(gaps[0]).toBeLessThanOrEqual(210);
      expect(Math.max(...gaps)).toBeLessThanOrEqual(3010);
      expect(gaps.at(-1)).toBeGreaterThan(2000);
    });

    it.each([
      ['failed', 'The Generation g has failed.'],
      ['canceled', 'The Generation g was canceled.'],
    ])('throws when the Generation is %s', async (status, message) => {
      const service = new FakeService([() => json(generation(status))]);
      const work = clientOf(service).generate({ prompt: 'x' });
      await expect(work).rejects.toThrow(GenerationFailedError);
      await expect(work).rejects.toThrow(message);
    });

    it('ends with the reason of an aborted signal, and stops polling', async () => {
      const service = new FakeService([() => json(generation('queued'))]);
      const controller = new AbortController();
      const work = clientOf(service).generate({ prompt: 'x' }, { signal: controller.signal });
      const rejected = expect(work).rejects.toThrow('enough');
      await jest.advanceTimersByTimeAsync(1000);
      controller.abort(new Error('enough'));
      await rejected;
      const { length } = service.sent;
      await jest.advanceTimersByTimeAsync(10_000);
      expect(service.sent).toHaveLength(length);
    });

    it('names the Generation when the time is over', async () => {
      const work = clientOf(new FakeService([() => json(generation('queued'))])).generate(
        { prompt: 'x' },
        { timeoutMs: 5000 },
      );
      expect(await elapsed(work)).toBeLessThan(5100);
      await expect(work).rejects.toBeInstanceOf(WaitTimeoutError);
      await expect(work).rejects.toMatchObject({ id: 'g', message: 'g was not finished after 5000 ms.' });
    });

    it('tells what it has made, whose id an aborted signal leaves to cancel it', async () => {
      const service = new FakeService([() => json(generation('queued'))]);
      const controller = new AbortController();
      const made: string[] = [];
      const work = clientOf(service).generate(
        { prompt: 'x' },
        { signal: controller.signal, onCreated: ({ id }) => void made.push(id) },
      );
      const rejected = expect(work).rejects.toThrow('enough');
      await jest.advanceTimersByTimeAsync(1000);
      controller.abort(new Error('enough'));
      await rejected;
      expect(made).toEqual(['g']);
    });

    it('has one time for both requests', async () => {
      const work = clientOf(new FakeService([() => problem(429, { 'retry-after': '50' })])).generate(
        { prompt: 'x' },
        { timeoutMs: 5000 },
      );
      expect(await elapsed(work)).toBeLessThan(5100);
      await expect(work).rejects.toBeInstanceOf(WaitTimeoutError);
      await expect(work).rejects.toMatchObject({ id: undefined });
    });

    it('waits longer than a timer can', async () => {
      const service = new FakeService([() => json(generation('queued')), () => json(generation('succeeded'))]);
      const work = clientOf(service).generate({ prompt: 'x' }, { timeoutMs: Infinity });
      await elapsed(work);
      await expect(work).resolves.toMatchObject({ id: 'g' });
    });
  });
});
