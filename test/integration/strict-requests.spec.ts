import { once } from 'node:events';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Task } from '@app/domain';
import { startTestApi } from '../support/api';
import { bundledDefaults } from '../support/bundled-defaults';
import { makeFinetune, type ProblemJson } from '../support/factories';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';

const json = { 'content-type': 'application/json' };
const path = '/v1/sd/text-to-image';

describe('Requests that the service does not take as they are', () => {
  const api = ofSuite(startTestApi);
  const key = ofSuite(() => api.createKey());

  const draw = (raw: string) =>
    api.request<ProblemJson & { id: string }>('POST', '/v1/sd/text-to-image', { key, raw, headers: json });

  describe('what is no HTTP', () => {
    const sent = async (text: string): Promise<string> => {
      const { hostname, port } = new URL(api.baseUrl);
      const socket = connect(Number(port), hostname);
      socket.write(text);
      return buffer(socket).then(String);
    };
    const post = 'POST /v1/sd/text-to-image HTTP/1.1\r\nHost: x\r\n';
    const models = () => `GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key.token}\r\n\r\n`;
    const drawing = () => {
      const body = '{"prompt":"x"}';
      const head = `Authorization: Bearer ${key.token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
      return `${post}${head}\r\n\r\n${body}`;
    };
    const drawings = () => api.dataSource.manager.countBy(Task, { ownerId: key.id });

    it.each([
      ['no host', 'GET /v1/models HTTP/1.1\r\n\r\n', 400],
      ['an unknown Expect header', `${post}Expect: tea\r\n\r\n`, 417],
    ])('answers %s in its turn, and carries out nothing behind it', async (_, text, status) => {
      const before = await drawings();
      const answers = (await sent(`${models()}${text}${drawing()}`)).split(/(?=HTTP\/1\.1 )/);
      expect(answers.map((answer) => answer.slice(9, 12))).toEqual(['200', String(status)]);
      expect(await drawings()).toBe(before);
    });

    it.each([
      ['what is no HTTP', 'GARBAGE\r\n\r\n'],
      ['a CONNECT request', 'CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n'],
    ])('writes nothing of %s into an answer that is open', async (_, text) => {
      const waiting = drawing().replace('\r\nContent-Type', '\r\nPrefer: wait=60\r\nContent-Type');
      const before = await drawings();
      const { hostname, port } = new URL(api.baseUrl);
      const socket = connect(Number(port), hostname);
      socket.on('error', () => undefined).write(waiting);
      await until(async () => (await drawings()) === before + 1, 'it waits');
      socket.write(text);
      expect(await buffer(socket).then(String, String)).not.toContain('HTTP/1.1');
    });

    it('outlives callers who ask for a proxy and vanish', async () => {
      const { hostname, port } = new URL(api.baseUrl);
      for (let n = 0; n < 20; n++) {
        const socket = connect(Number(port), hostname);
        socket.on('error', () => undefined).write('CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n');
        await once(socket, 'connect');
        socket.resetAndDestroy();
      }
      expect((await sent(models().replace('Host', 'Connection: close\r\nHost'))).slice(9, 12)).toBe('200');
    });

    it.each([
      ['a line that is no request', 'GARBAGE\r\n\r\n', 400],
      ['a header with a control character', `${post}X-A: a\u0001b\r\n\r\n`, 400],
      ['two lengths', `${post}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n`, 400],
      ['no host', 'GET /v1/models HTTP/1.1\r\n\r\n', 400],
      ['an unknown Expect header', `${post}Expect: tea\r\n\r\n`, 417],
      ['a CONNECT request', 'CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n', 400],
      ['headers that are too large', `${post}X-A: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
    ])('answers %s with a problem', async (_, text, status) => {
      const [head, body] = (await sent(text)).split('\r\n\r\n');
      expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(head).toMatch(/^X-Request-Id: [\w-]{36}$/m);
      expect(JSON.parse(body)).toMatchObject({ status, code: 'BadRequest', detail: expect.any(String) as string });
    });
  });

  describe('what JSON libraries would change', () => {
    it.each([
      [
        'a number with too many digits',
        '{"prompt":"x","metadata":{"a":[{"id":1234567890123456789}]}}',
        '/metadata/a/0/id',
      ],
      ['a seed with a small fraction', '{"prompt":"x","seed":7.00000000000000000001}', '/seed'],
      ['a key that is there twice', String.raw`{"prompt":"x","metadata":{"a":1,"\u0061":2}}`, '/metadata/a'],
    ])('refuses %s, and names it', async (_, raw, pointer) => {
      const { status, body } = await draw(raw);
      expect([status, body.code, body.errors?.map((error) => error.pointer)]).toEqual([
        400,
        'ValidationFailed',
        [pointer],
      ]);
    });

    it('returns all other numbers as they were sent', async () => {
      const sent = '{"a":0.1,"b":-7.25,"c":1e+21,"d":123456789012345680000,"e":5e-324,"f":1.7976931348623157e+308}';
      const { body } = await draw(`{"prompt":"x","metadata":${sent}}`);
      const { text } = await api.request('GET', `/v1/sd/text-to-image/${body.id}`, { key });
      expect(text).toContain(`"metadata":${sent}`);
    });
  });

  describe('null', () => {
    it('means that an optional field is not given', async () => {
      const nothing = { seed: 1, negative_prompt: null, cfg: null, steps: null, model: null, aspect_ratio: null };
      const { status, body } = await api.request('POST', '/v1/sd/text-to-image', {
        key,
        body: { prompt: 'x', ...nothing, num_generations: null, high_resolution: null, output_format: null },
      });
      expect(status).toBe(201);
      expect(body).toMatchObject({ ...bundledDefaults, model: 'sd1.5', aspect_ratio: 'square', num_generations: 1 });
    });

    it('in POST /v1/finetunes decides nothing about which of the two is meant', async () => {
      const post = (body: object) => api.request('POST', '/v1/finetunes', { key, body });
      expect((await post({ prompt: null, name: 'robot' })).body).toMatchObject({ status: 'registered' });
      expect((await post({ prompt: 'x', name: null })).body).toMatchObject({ status: 'queued' });
    });
  });

  it('say in one sentence what both kinds of POST /v1/finetunes need', async () => {
    for (const body of [{}, { num_generations: 2 }]) {
      const reply = await api.request<ProblemJson>('POST', '/v1/finetunes', { key, body });
      expect([reply.status, reply.body.code]).toEqual([400, 'PromptMissing']);
      expect(reply.body.detail).toMatch(/"\/prompt" .*"name".*registers a Fine-Tune/);
    }
  });

  describe('a body where none is taken', () => {
    const paths = async () => {
      const { body } = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
        key,
        body: { prompt: 'x' },
      });
      return `/v1/sd/text-to-image/${body.id}/cancel`;
    };

    it('is refused with its fields, and nothing is done', async () => {
      const path = await paths();
      const reply = await api.request<ProblemJson>('POST', path, { key, body: { reason: 'x' } });
      expect([reply.status, reply.body.errors?.[0].pointer]).toEqual([400, '/reason']);
      expect((await api.request('POST', path, { key, body: [1] })).status).toBe(400);
      expect(
        (await api.request('POST', path, { key, raw: 'x', headers: { 'content-type': 'text/plain' } })).status,
      ).toBe(415);
      expect((await api.request('GET', path.replace('/cancel', ''), { key })).body.status).toBe('queued');
    });

    it.each([
      ['none', {}],
      ['an empty object', { body: {} }],
      ['an empty text', { raw: '', headers: json }],
    ])('may be %s', async (_, options) => {
      expect((await api.request('POST', await paths(), { key, ...options })).status).toBe(201);
    });
  });

  describe('the message', () => {
    const refusal = async (body: object) =>
      (await api.request<ProblemJson>('POST', '/v1/sd/text-to-image', { key, body })).body;

    it.each([
      ['num_images', 4, 'num_generations'],
      ['n', 1, 'num_generations'],
      ['guidance_scale', 7, 'cfg'],
      ['cfg_scale', 7, 'cfg'],
      ['num_inference_steps', 30, 'steps'],
      ['size', '512x512', 'aspect_ratio'],
      ['image_width', 512, 'width'],
      ['webhook_url', 'https://a.example', 'webhook'],
      ['callback', 'https://a.example', 'webhook'],
    ])('says what %s is called here', async (name, value, ours) => {
      const { errors } = await refusal({ prompt: 'x', [name]: value });
      const message = expect.stringContaining(`is not a known field; it is called "${ours}" here`) as string;
      expect(errors).toEqual([{ pointer: `/${name}`, message }]);
    });

    it.each([
      ['POST', 'F/prompts', [{ prompt: 'a robot', n: 2 }], /; it is called "num_generations" here\.$/],
      ['POST', 'F/prompts', [{ prompt: 'a robot', sampler: 'ddim' }], /; it is called "scheduler" here\.$/],
      ['POST', 'F/prompts', [{ prompt: 'a robot', image_size: '5x5' }], /"width" and "height" where it is in pixels/],
      ['POST', 'F/prompts', [{ prompt: `robot${'\u0301'.repeat(31)}` }], /more than 30 combining marks in a row\.$/],
      ['POST', 'F/prompts', [{ prompt: 'a robot', loras: [] }], /; send it to POST \/v1\/sd\/text-to-image, with this/],
      ['POST', 'F/styles', [{ id: 'x', controlnet: [] }], /; a Style is a text; send the text to POST/],
      ['PATCH', 'F', { name: 'robot' }, /; it cannot be changed; register another Fine-Tune\.$/],
      [
        'POST',
        '/v1/finetunes',
        { name: 'robot', prompt: 'x' },
        /"\/name" is not a known field of a Generation, which a body/,
      ],
      [
        'POST',
        '/v1/finetunes',
        { prompt: 'x', token: 'y' },
        /"\/token" is not a known field of a Generation, which a body/,
      ],
      ['POST', '/v1/finetunes', { prompt: 'x', colour: 'y' }, /"\/colour" is not a known field\./],
      [
        'POST',
        '/v1/finetunes',
        { name: 'y', title: 'y', prompt: 'x' },
        /register a Fine-Tune \(one of 2 problems\)\.$/,
      ],
      ['POST', '/v1/images/generations', { prompt: 'x', num_generations: 2 }, /; it is called "n" here\.$/],
      ['POST', '/v1/images/generations', { prompt: 'x', num_images: 2 }, /; it is called "n" here\.$/],
      ['POST', '/v1/keys', { name: 'shop', scope: 'write' }, /; it is called "scopes" here\.$/],
    ])('says at %s %s what to send instead in %j', async (method, path, body, detail) => {
      const admin = await api.createKey({ scopes: ['admin'] });
      const { id } = await makeFinetune(api, admin);
      const options = { key: admin, body };
      const reply = await api.request<ProblemJson & { error?: { message: string } }>(
        method,
        path.replace('F', `/v1/finetunes/${id}`),
        options,
      );
      const said = reply.body.error?.message ?? reply.body.detail;
      expect([reply.status, said]).toEqual([400, expect.stringMatching(detail)]);
    });

    it.each([
      ['{"prompt": "a", }', 'it is not valid JSON, from its character 17 on'],
      [
        '{"prompt": "a"',
        'it is not valid JSON: a bracket or a quotation mark is open at its end, or a bracket closes nothing',
      ],
    ])('says where %s is not JSON', async (raw, reason) => {
      expect((await draw(raw)).body.detail).toBe(`The body cannot be read: ${reason}.`);
    });

    it('says which shapes there are instead of a steeper one', async () => {
      const { detail } = await refusal({ prompt: 'x', aspect_ratio: '9:1' });
      expect(detail).toMatch(/must be square, portrait, landscape, or a ratio from 1:4 to 4:1 .*got "9:1"/);
    });

    it('and the code speak of the same problem', async () => {
      const finetune = await makeFinetune(api, key);
      const { body } = await api.request<ProblemJson>('POST', `/v1/finetunes/${finetune.id}/prompts`, {
        key,
        body: [{ prompt: 'a robot', cfg: 'x' }, { prompt: null }],
      });
      expect([body.code, body.detail]).toEqual(['PromptMissing', '"/1/prompt" is required (one of 2 problems).']);
      const { code, detail } = await refusal({ input: { prompt: 'x' } });
      expect([code, detail]).toEqual(['PromptMissing', expect.stringContaining('"/prompt" is required')]);
    });

    it('says what came instead of a number', async () => {
      expect((await refusal({ prompt: 'x', steps: '30' })).detail).toBe('"/steps" must be an integer, got "30".');
      expect((await refusal({ prompt: 'x', steps: 2.5 })).detail).toBe('"/steps" must be an integer, got 2.5.');
      expect((await refusal({ prompt: 'x', cfg: [7] })).detail).toBe('"/cfg" must be a number, got an array.');
    });
  });

  it('answers name the Location of whatever was made or has changed its state', async () => {
    const post = async (to: string, body: object) => {
      const reply = await api.request<{ id: string }>('POST', to, { key, body });
      return [reply.headers.get('location'), reply.body.id];
    };
    const base = api.config.publicUrl;
    const [generation, id] = await post(path, { prompt: 'x' });
    expect(generation).toBe(`${base}${path}/${id}`);
    const [same, sameId] = await post('/v1/finetunes', { prompt: 'x' });
    expect(same).toBe(`${base}${path}/${sameId}`);
    const [finetune, finetuneId] = await post('/v1/finetunes', { name: 'robot' });
    expect(finetune).toBe(`${base}/v1/finetunes/${finetuneId}`);
    const [collection, collectionId] = await post('/v1/prompts/collections', { name: 'x', styles: [] });
    expect(collection).toBe(`${base}/v1/prompts/collections/${collectionId}`);
    const canceled = await api.request('POST', `${path}/${id}/cancel`, { key });
    expect(canceled.headers.get('location')).toBe(generation);
  });

  it('answers say which methods a path allows', async () => {
    const { status, headers, body } = await api.request<ProblemJson>('PUT', path, { key, body: {} });
    expect([status, body.code, headers.get('allow')]).toEqual([405, 'MethodNotAllowed', 'GET, HEAD, POST']);
  });
});
