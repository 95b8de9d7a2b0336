import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OlderTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import sharp from 'sharp';
import { longRequestsPerKey } from '../../apps/api/src/defence/open-requests';
import { startTestApi, type TestKey } from '../support/api';
import { ofSuite, ofTest } from '../support/of-suite';
import { smallPicture } from '../support/small-picture';
import { until } from '../support/until';

interface Answer {
  isError?: boolean;
  content: { type: string; text?: string; data?: string; mimeType?: string }[];
}

interface Progress {
  progress: number;
  total?: number;
  message?: string;
}

type CallTool = (name: string, input?: object, onprogress?: (told: Progress) => void) => Promise<Answer>;

const PUBLIC_URL = 'https://pictures.example.com/darkroom';

/** The clients of both generations, with nothing but an address and a key. */
describe('POST /mcp', () => {
  const api = ofSuite(() =>
    startTestApi({ RATE_LIMIT_PER_MINUTE: '6000', CORS_ORIGINS: 'https://agents.example.com', PUBLIC_URL }),
  );
  const sandbox = ofSuite(() => api.createKey({ sandbox: true, rateLimitPerMinute: 0 }));
  const key = ofTest(() => api.createKey({ rateLimitPerMinute: 0 }));
  const reader = ofTest(() => api.createKey({ scopes: ['read'], rateLimitPerMinute: 0 }));
  const opened: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const client of opened.splice(0)) await client.close();
  });

  const clients = {
    'revision of 2026': { Kind: Client, Transport: StreamableHTTPClientTransport },
    'revision of 2025': { Kind: OlderClient, Transport: OlderTransport },
  };

  async function clientOf(kind: keyof typeof clients, { token }: Pick<TestKey, 'token'>) {
    const { Kind, Transport } = clients[kind];
    const client = new Kind({ name: 'test', version: '1' }) as unknown as Client;
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    await client.connect(new Transport(new URL(`${api.baseUrl}/mcp`), { requestInit }));
    opened.push(client);
    const call: CallTool = async (name, input = {}, onprogress = () => undefined) =>
      (kind === 'revision of 2026'
        ? await client.callTool({ name, arguments: input as Record<string, unknown> }, { onprogress })
        : await (client as unknown as OlderClient).callTool({ name, arguments: input as never }, undefined, {
            onprogress,
          })) as Answer;
    return { client, call };
  }

  /** Without a client. */
  const ask = (headers: Record<string, string>, method = 'tools/list', params: object = {}, signal?: AbortSignal) =>
    fetch(`${api.baseUrl}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      ...(signal && { signal }),
    });

  const textOf = ({ content }: Answer): string => content.find(({ type }) => type === 'text')!.text!;
  const recordOf = <T>(answer: Answer): T => JSON.parse(textOf(answer)) as T;

  describe.each(Object.keys(clients) as (keyof typeof clients)[])('to a client of the %s', (kind) => {
    it('lists tools whose inputs are those of the routes', async () => {
      const { client } = await clientOf(kind, key);
      const { tools } = await client.listTools();
      const names = ['draw', 'get_drawing', 'cancel_drawing', 'train', 'list_models', 'list_finetunes'];
      expect(tools.map(({ name }) => name)).toEqual([...names, 'upload_picture']);
      const { properties = {}, required } = tools[0].inputSchema;
      expect(Object.keys(properties)).toEqual(expect.arrayContaining(['prompt', 'image', 'finetunes', 'seed']));
      expect([properties.webhook, required]).toEqual([undefined, ['prompt']]);
      expect(JSON.stringify(tools)).not.toContain('$ref');
    });

    it('draws, tells each step, and shows the picture with its URL', async () => {
      const { call } = await clientOf(kind, sandbox);
      const told: Progress[] = [];
      const answer = await call('draw', { prompt: 'a red circle', steps: 6 }, (each) => told.push(each));
      const { images } = recordOf<{ images: string[] }>(answer);
      const [picture] = answer.content;
      const { width, format } = await sharp(Buffer.from(picture.data!, 'base64')).metadata();
      expect([picture.type, picture.mimeType, width, format]).toEqual(['image', 'image/png', 512, 'png']);
      expect(images).toEqual([expect.stringMatching(/\/images\/.+\.png$/)]);
      expect(told.map(({ total }) => total)).toEqual(told.map(() => 6));
      expect(told.at(-1)).toMatchObject({ progress: 6, message: 'Step 6 of 6' });
      const { id } = recordOf<{ id: string }>(answer);
      expect((await call('get_drawing', { id })).content.map(({ type }) => type)).toEqual(['image', 'text']);
    });

    it('shows of large pictures the first as a thumbnail', async () => {
      const { call } = await clientOf(kind, sandbox);
      const large = { prompt: 'a red circle', steps: 1, width: 1056, height: 512, num_generations: 2 };
      const answer = await call('draw', large);
      expect(answer.content.map(({ type, mimeType }) => mimeType ?? type)).toEqual(['image/webp', 'text']);
      expect(recordOf<{ images: string[] }>(answer).images).toHaveLength(2);
    });

    it('refuses with the sentence of the route', async () => {
      const { call } = await clientOf(kind, key);
      const refused = await call('draw', { prompt: 'a fox', steps: 500, colour: 'red' });
      expect(refused.isError).toBe(true);
      expect(textOf(refused)).toMatch(/steps must be .*; colour is not a known field/);
      expect(textOf(await call('draw', { prompt: 'a fox', model: 'nope' }))).toMatch(
        /"nope" is not installed; GET \/v1\/models/,
      );
      for (const id of ['../models', '', '.', '\ud800', 'a'.repeat(24)])
        expect(textOf(await call('get_drawing', { id }))).toMatch(/^There is no Generation|not found/);
      expect(textOf(await call('upload_picture', { data: 'aGVsbG8=' }))).toMatch(/PNG, JPEG or WebP/);
    });

    it('lets a key that may only read look, and not draw', async () => {
      const { call } = await clientOf(kind, reader);
      expect(recordOf<{ name: string }[]>(await call('list_models')).map(({ name }) => name)).toContain('shapes');
      const refused = await call('draw', { prompt: 'a fox' });
      expect([refused.isError, textOf(refused)]).toEqual([true, expect.stringContaining('the scope "write"')]);
    });
  });

  it('keeps a picture that is sent, and draws from it', async () => {
    const { call } = await clientOf('revision of 2026', sandbox);
    const data = (await smallPicture()).toString('base64');
    const { url } = recordOf<{ url: string }>(await call('upload_picture', { data }));
    const answer = await call('draw', { prompt: 'a fox', image: url, strength: 0.5 });
    expect(recordOf<{ image: string }>(answer).image).toBe(url);
  });

  it('cancels the drawing of an agent that gives up', async () => {
    const aborter = new AbortController();
    const params = { name: 'draw', arguments: { prompt: 'a fox' } };
    const drawing = ask({ authorization: `Bearer ${key.token}` }, 'tools/call', params, aborter.signal).then((answer) =>
      answer.text(),
    );
    const statuses = async () => {
      const { body } = await api.request<{ status: string }[]>('GET', '/v1/sd/text-to-image', { key });
      return body.map(({ status }) => status);
    };
    await until(async () => (await statuses()).includes('queued'), 'it is queued');
    aborter.abort();
    await expect(drawing).rejects.toThrow();
    await until(async () => (await statuses()).includes('canceled'), 'it is canceled');
  });

  it('has a bound of open calls for each key', async () => {
    const { token } = key;
    const open = longRequestsPerKey['call of an agent'];
    const params = { name: 'draw', arguments: { prompt: 'a fox' } };
    const aborter = new AbortController();
    const headers = { authorization: `Bearer ${token}` };
    const calls = Array.from({ length: open + 5 }, () => ask(headers, 'tools/call', params, aborter.signal));
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 429)).toHaveLength(5);
    aborter.abort();
  });

  it('says what is wrong with a first request', async () => {
    const headers = { authorization: `Bearer ${key.token}` };
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {} };
    const answer = await ask(headers, 'initialize', params);
    const { id, error } = (await answer.json()) as { id: number; error: { code: number; message: string } };
    expect([id, error.code, error.message]).toEqual([
      1,
      -32602,
      expect.stringMatching(/^"params.clientInfo.name" is not/),
    ]);
  });

  it('answers nobody without a key, and no page of another address', async () => {
    const authorization = `Bearer ${key.token}`;
    expect((await ask({})).status).toBe(401);
    expect((await ask({})).headers.get('www-authenticate')).toContain('Bearer');
    expect((await ask({ authorization, origin: 'https://evil.example.com' })).status).toBe(403);
    expect((await ask({ authorization, origin: 'https://agents.example.com' })).status).toBe(200);
    expect((await fetch(`${api.baseUrl}/mcp`, { headers: { authorization } })).status).toBe(405);
  });
});
