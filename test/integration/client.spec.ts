import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import sharp from 'sharp';
import { type Client, type ClientOptions, createClient, DarkroomError } from '../../packages/client/src';
import { startTestApi } from '../support/api';
import { freePort } from '../support/free-port';
import { ofSuite, ofTest } from '../support/of-suite';

describe('@darkroom/client', () => {
  const api = ofSuite(() => startTestApi({ PUBLIC_URL: 'https://pictures.example/darkroom' }));
  const key = ofTest(() => api.createKey({ sandbox: true }));
  let client: Client;

  beforeEach(async () => {
    client = clientOf();
  });

  const clientOf = (options: Partial<ClientOptions> = {}) =>
    createClient({ baseUrl: api.baseUrl, apiKey: key.token, retries: 0, ...options });
  const failureOf = (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => undefined,
      (error: unknown) => error,
    );

  it('downloads a picture from its own address, whatever the public one is', async () => {
    const { images } = await client.generate({ prompt: 'a star', steps: 1, output_format: 'webp' });
    expect(images[0]).toMatch(/^https:\/\/pictures\.example\/darkroom\/images\//);
    const { data, response } = await client.download(images[0]).withResponse();
    expect(response.headers.get('content-type')).toBe('image/webp');
    expect((await sharp(data).metadata()).width).toBe(512);
    expect(() => client.download('https://example.com/cat.png')).toThrow('"https://example.com/cat.png" is not');
    const elsewhere = `https://example.com/images/${'a'.repeat(24)}.png`;
    expect(await failureOf(client.download(elsewhere))).toMatchObject({
      code: 'ImageNotFound',
      message: expect.stringContaining(`download() asks ${api.baseUrl} for /images/`) as string,
    });
  });

  it('gives the response of a request, and its error once', async () => {
    const { data, response } = await client.generations.create({ prompt: 'a star' }).withResponse();
    expect(response.status).toBe(201);
    expect(response.headers.get('location')).toContain(data.id);
    const error = await failureOf(client.generations.get('a'.repeat(24)).withResponse());
    expect(error).toMatchObject({ status: 404, code: 'GenerationNotFound' });
  });

  it('reads every page, each element once', async () => {
    const made = [];
    for (const prompt of ['a', 'b', 'c', 'd', 'e']) made.unshift((await client.generations.create({ prompt })).id);
    const pages: string[][] = [];
    for await (const page of client.generations.pages({ limit: 2 })) pages.push(page.map(({ id }) => id));
    expect(pages.map(({ length }) => length)).toEqual([2, 2, 1]);
    expect(pages.flat()).toEqual(made);
    for await (const page of client.collections.pages()) throw new Error(`There are ${page.length}.`);
  });

  describe('events', () => {
    /** The names of the events, up to the end. */
    const follow = async (id: string, of = client, onEvent?: () => void) => {
      const names: string[] = [];
      for await (const { event } of of.generations.events(id)) {
        names.push(event);
        onEvent?.();
      }
      return names;
    };
    const slow = { prompt: 'a star', steps: 4, metadata: { sandbox: { delay_ms: 3000 } } };

    it('come one by one, and end with the record', async () => {
      const { id } = await client.generations.create(slow);
      const steps: number[] = [];
      for await (const { event, data } of client.generations.events(id)) {
        if (event === 'progress') steps.push(data.step);
        if (event === 'terminated') expect(data).toEqual(await client.generations.get(id));
      }
      expect(steps.length).toBeGreaterThan(1);
      expect(steps).toEqual([...new Set(steps)].sort());
    });

    it('go on over another connection where one broke', async () => {
      const { id } = await client.generations.create(slow);
      const sockets = new Set<Socket>();
      const requests: string[] = [];
      const { port } = new URL(api.baseUrl);
      const proxy = createServer((socket) => {
        const upstream = connect(Number(port), '127.0.0.1');
        sockets.add(socket);
        socket.on('data', (bytes: Buffer) => requests.push(bytes.toString()));
        for (const each of [socket, upstream]) each.on('error', () => undefined);
        socket.pipe(upstream).pipe(socket);
      });
      await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
      const through = clientOf({ baseUrl: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
      let broken = 0;
      const names = await follow(id, through, () => {
        if (broken++ === 1) for (const socket of sockets) socket.destroy();
      });
      proxy.close();
      expect(names.filter((name) => name === 'terminated')).toHaveLength(1);
      expect(names.at(-1)).toBe('terminated');
      expect(requests.length).toBeGreaterThan(1);
      expect(requests[1]).toMatch(/last-event-id: \d+-\d+/i);
    });

    it('end when the record is deleted, and with the reason of a signal', async () => {
      const waits = { ...slow, steps: 50, metadata: { sandbox: { delay_ms: 50_000 } } };
      const first = await client.generations.create(waits);
      const names = follow(first.id, client, () => void client.generations.delete(first.id).catch(() => undefined));
      expect((await names).at(-1)).toBe('deleted');
      const { id } = await client.generations.create(waits);
      const abort = new AbortController();
      const reading = async () => {
        for await (const { event } of client.generations.events(id, { signal: abort.signal }))
          if (event === 'progress' || event === 'queued') abort.abort(new Error('enough'));
      };
      await expect(reading()).rejects.toThrow('enough');
    });

    it('of a Prompt end with its record and status', async () => {
      const finetune = await client.finetunes.create({ name: 'star' });
      const [{ id }] = await client.prompts.create(finetune.id, [{ prompt: 'a star', steps: 1 }]);
      let last;
      for await (const { event, data } of client.prompts.events(finetune.id, id))
        if (event === 'terminated') last = data;
      expect(last).toMatchObject({ id, status: 'succeeded', images: [expect.any(String)] });
    });

    it('of a record that is not there are an error', async () => {
      await expect(follow('a'.repeat(24))).rejects.toMatchObject({ status: 404, code: 'GenerationNotFound' });
    });
  });

  describe('names the cause', () => {
    const messageOf = async (options: Partial<ClientOptions>) => {
      const error = await failureOf(clientOf(options).models.list());
      expect(error).toBeInstanceOf(DarkroomError);
      return (error as DarkroomError).message;
    };
    const withServer = async (answer: (socket: Socket) => void, work: (baseUrl: string) => Promise<void>) => {
      const server = createServer(answer);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).finally(() => server.close());
    };

    it('if it is asked by https, and only listens to http', async () => {
      const baseUrl = api.baseUrl.replace('http:', 'https:');
      expect(await messageOf({ baseUrl })).toBe(
        `${baseUrl} does not speak TLS as https needs it. Perhaps its address begins with http://.`,
      );
    });

    it('if nothing listens', async () => {
      const baseUrl = `http://127.0.0.1:${await freePort()}`;
      expect(await messageOf({ baseUrl })).toBe(`Nothing listens at ${baseUrl}.`);
    });

    it('if there is no such host', async () => {
      expect(await messageOf({ baseUrl: 'http://darkroom.invalid' })).toMatch(/"darkroom\.invalid"/);
    });

    it('if the connection is closed, or silent', async () => {
      await withServer(
        (socket) => socket.once('data', () => socket.destroy()),
        async (baseUrl) => expect(await messageOf({ baseUrl })).toMatch(`${baseUrl} closed the connection`),
      );
      await withServer(
        (socket) => socket.once('data', () => setTimeout(() => socket.destroy(), 5000).unref()),
        async (baseUrl) =>
          expect(await messageOf({ baseUrl, requestTimeoutMs: 50 })).toBe(`${baseUrl} did not answer within 0.05 s.`),
      );
    });

    it('if another server answers', async () => {
      const server = createHttpServer((_, response) => response.setHeader('content-type', 'text/html').end('<html>'));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const message = await messageOf({ baseUrl });
      server.close();
      expect(message).toBe(
        `${baseUrl} answered with text/html instead of JSON. Perhaps this is not a Darkroom server.`,
      );
    });

    it('if the address or the key cannot be one, before any request, and without the key', () => {
      expect(() => clientOf({ baseUrl: 'localhost:3000' })).toThrow(
        'such as http://localhost:3000, got "localhost:3000"',
      );
      expect(() => clientOf({ apiKey: 'dr_secret\ndr_other' })).toThrow(/^(?!.*secret)apiKey has a character/s);
      expect(() => clientOf({ apiKey: `${key.token}\n` })).not.toThrow();
    });
  });
});
