import { elapsed, FakeService, type Sent } from '../../../test/support/fake-service';
import { createClient } from './client.ts';
import { follow } from './events.ts';

const queued = (position: number) => `event: queued\ndata: {"position":${position}}\n\n`;
const step = (n: number) => `id: 1-${n}\nevent: progress\ndata: {"step":${n},"total":9,"preview":null}\n\n`;
const terminated = 'id: 1-end\nevent: terminated\ndata: {"id":"g","status":"succeeded"}\n\n';
const comment = ': still here\n\n';

const stream = (body: string | ReadableStream<Uint8Array>, type = 'text/event-stream; charset=utf-8') =>
  new Response(body, { headers: { 'content-type': type } });

/** A stream that a proxy cuts after 11 s, with something of the service every 5.5 s. */
function cutLater(first: string): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      [first, comment, comment].forEach((text, n) =>
        setTimeout(() => controller.enqueue(encoder.encode(text)), n * 5500),
      );
      setTimeout(() => controller.error(new Error('cut')), 11_100);
    },
  });
  return stream(body);
}

describe(follow.name, () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  const events = async (service: FakeService) => {
    const client = createClient({ baseUrl: 'https://darkroom.example', apiKey: 'dr_key', fetch: service.fetch });
    const found: string[] = [];
    for await (const { event } of client.generations.events('g')) found.push(event);
    return found;
  };

  it('reads events whose text comes in any pieces, and takes no beginning of one for an event', async () => {
    const text = `retry: 2000\n\n${comment}${queued(3)}${step(2)}event: progress\ndata: {"st`;
    const encoder = new TextEncoder();
    const inPieces = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const character of text) controller.enqueue(encoder.encode(character));
        controller.close();
      },
    });
    const service = new FakeService([() => stream(inPieces), () => stream(terminated)]);
    const work = events(service);
    await elapsed(work);
    await expect(work).resolves.toEqual(['queued', 'progress', 'terminated']);
    expect(service.sent.at(-1)?.headers).toMatchObject({ 'Last-Event-ID': '1-2' });
  });

  it('gives up on streams that all break after the place in the queue, which each begins with', async () => {
    const service = new FakeService([() => stream(queued(3))]);
    const work = events(service);
    await elapsed(work);
    await expect(work).rejects.toMatchObject({ status: 0 });
    expect(service.sent.length).toBeLessThanOrEqual(7);
  });

  it('goes on over any number of streams as long as each has news', async () => {
    const moves = Array.from({ length: 9 }, (_, n) => () => stream(queued(9 - n)));
    const steps = Array.from({ length: 9 }, (_, n) => () => stream(step(n + 1)));
    const service = new FakeService([...moves, ...steps, () => stream(terminated)]);
    const work = events(service);
    await elapsed(work);
    expect((await work).at(-1)).toBe('terminated');
    expect(service.sent.at(-1)?.headers).toMatchObject({ 'Last-Event-ID': '1-9' });
  });

  it('goes on without news if a proxy ends each stream after a while', async () => {
    const service = new FakeService([
      ...Array.from({ length: 7 }, () => () => cutLater(queued(3))),
      () => stream(terminated),
    ]);
    const work = events(service);
    await elapsed(work);
    expect(await work).toEqual([...Array.from({ length: 7 }, () => 'queued'), 'terminated']);
  });

  it.each([
    ['text/html', () => stream('<html>', 'text/html')],
    ['application/json', (_: Sent) => stream('{}', 'application/json')],
  ])('says that %s is no stream of events, after one request', async (type, answer) => {
    const service = new FakeService([answer]);
    await expect(events(service)).rejects.toMatchObject({
      status: 200,
      message: `https://darkroom.example answered with ${type} instead of events. Perhaps this is not a Darkroom server.`,
    });
    expect(service.sent).toHaveLength(1);
  });

  it('ends with a 204, which has no type', async () => {
    await expect(events(new FakeService([() => new Response(null, { status: 204 })]))).resolves.toEqual([]);
  });
});
