import { ImageTask } from '@app/domain';
import { describeOnce, itOnce } from '../support/back-ends';
import type { Reply, TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { bundledDefaults } from '../support/bundled-defaults';

interface GenerationJson {
  id: string;
  status: string;
  seed: number;
  [field: string]: unknown;
}

interface ProblemJson {
  status: number;
  code: string;
  detail: string;
  instance: string;
  errors?: { pointer?: string; parameter?: string; message: string }[];
}

describe('Generations', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
  });

  afterAll(() => api.close());

  const create = (body: object) => api.request<GenerationJson>('POST', '/v1/sd/text-to-image', { key, body });

  describe('create', () => {
    it('returns 201 with the whole record and every default filled in', async () => {
      const { status, body, headers } = await create({ prompt: 'a red circle' });
      expect(status).toBe(201);
      expect(headers.get('x-request-id')).toBeTruthy();
      const { id, seed, started_at, ...rest } = body;
      expect(id).toMatch(/^[A-Za-z0-9_-]{24}$/);
      expect(Number.isInteger(seed) && seed >= 0 && seed <= 4_294_967_295).toBe(true);
      expect(started_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(rest).toEqual({
        prompt: 'a red circle',
        negative_prompt: null,
        aspect_ratio: 'square',
        webhook: null,
        model: 'sd1.5',
        num_generations: 1,
        metadata: null,
        error: null,
        status: 'queued',
        images: [],
        ...bundledDefaults,
        high_resolution: false,
        output_format: 'png',
        prompt_weighting: false,
        prompt_chunks: 1,
        upscaler: null,
        served_by: null,
        completed_at: null,
      });
    });

    itOnce('returns what was sent, with metadata keys in the same order', async () => {
      const sent = {
        prompt: 'ein roter Kreis 🔴',
        negative_prompt: '',
        aspect_ratio: 'portrait',
        webhook: 'https://example.com/hook?x=1',
        model: 'shapes',
        num_generations: 8,
        metadata: { zebra: 1, alpha: [true, null, { deep: 'ü' }], '1': 2.5 },
        cfg: 20,
        steps: 50,
        seed: 4_294_967_295,
        scheduler: 'euler',
        output_format: 'webp',
        prompt_weighting: true,
      };
      const { status, body } = await create(sent);
      expect(status).toBe(201);
      expect(body).toMatchObject(sent);
      expect(JSON.stringify(body.metadata)).toBe(JSON.stringify(sent.metadata));
      const found = await api.request<GenerationJson>('GET', `/v1/sd/text-to-image/${body.id}`, { key });
      expect(found.body).toEqual(body);
    });

    itOnce('accepts the aspect ratio as an array with one word', async () => {
      const { body } = await create({ prompt: 'x', aspect_ratio: ['landscape'] });
      expect(body.aspect_ratio).toBe('landscape');
    });

    itOnce('is the same operation at POST /v1/finetunes', async () => {
      const { status, body } = await api.request<GenerationJson>('POST', '/v1/finetunes', {
        key,
        body: { prompt: 'a star' },
      });
      expect(status).toBe(201);
      const found = await api.request<GenerationJson>('GET', `/v1/sd/text-to-image/${body.id}`, { key });
      expect(found.body).toEqual(body);
    });

    itOnce('rejects a model that is neither installed nor has a stand-in', async () => {
      const { status, body } = await api.request<ProblemJson>('POST', '/v1/sd/text-to-image', {
        key,
        body: { prompt: 'x', model: 'sdxl' },
      });
      expect(status).toBe(422);
      expect(body).toMatchObject({ code: 'ModelNotInstalled', errors: [{ pointer: '/model' }] });
    });

    const deep = (levels: number): object => (levels === 1 ? {} : { a: deep(levels - 1) });
    const bad: [string, unknown, string, string[]][] = [
      ['nothing', {}, 'PromptMissing', ['/prompt']],
      ['an array', [], 'ValidationFailed', ['']],
      ['null', null, 'ValidationFailed', ['']],
      ['a string', 'x', 'ValidationFailed', ['']],
      ['a number', 7, 'ValidationFailed', ['']],
      ['a null prompt', { prompt: null }, 'PromptMissing', ['/prompt']],
      ['a prompt that is a number', { prompt: 1 }, 'ValidationFailed', ['/prompt']],
      ['a prompt that is an object', { prompt: {} }, 'ValidationFailed', ['/prompt']],
      ['an empty prompt', { prompt: '' }, 'PromptMissing', ['/prompt']],
      ['a blank prompt', { prompt: '  \n' }, 'PromptMissing', ['/prompt']],
      ['a prompt of 2001 characters', { prompt: 'x'.repeat(2001) }, 'ValidationFailed', ['/prompt']],
      ['a NUL in the prompt', { prompt: 'a\0b' }, 'ValidationFailed', ['/prompt']],
      ['a lone surrogate in the prompt', { prompt: 'a\ud800b' }, 'ValidationFailed', ['/prompt']],
      [
        'a negative prompt of 2001',
        { prompt: 'x', negative_prompt: 'x'.repeat(2001) },
        'ValidationFailed',
        ['/negative_prompt'],
      ],
      [
        'a negative prompt that is false',
        { prompt: 'x', negative_prompt: false },
        'ValidationFailed',
        ['/negative_prompt'],
      ],
      ['cfg below 1', { prompt: 'x', cfg: 0.99 }, 'ValidationFailed', ['/cfg']],
      ['cfg above 20', { prompt: 'x', cfg: 20.01 }, 'ValidationFailed', ['/cfg']],
      ['cfg as a string', { prompt: 'x', cfg: '7.5' }, 'ValidationFailed', ['/cfg']],
      ['steps 0', { prompt: 'x', steps: 0 }, 'ValidationFailed', ['/steps']],
      ['steps 51', { prompt: 'x', steps: 51 }, 'ValidationFailed', ['/steps']],
      ['steps 2.5', { prompt: 'x', steps: 2.5 }, 'ValidationFailed', ['/steps']],
      ['steps true', { prompt: 'x', steps: true }, 'ValidationFailed', ['/steps']],
      ['seed -1', { prompt: 'x', seed: -1 }, 'ValidationFailed', ['/seed']],
      ['seed 2^32', { prompt: 'x', seed: 4_294_967_296 }, 'ValidationFailed', ['/seed']],
      ['seed 1e400', { prompt: 'x', seed: Number.MAX_VALUE }, 'ValidationFailed', ['/seed']],
      ['seed as a string', { prompt: 'x', seed: '1' }, 'ValidationFailed', ['/seed']],
      ['num_generations 0', { prompt: 'x', num_generations: 0 }, 'ValidationFailed', ['/num_generations']],
      ['num_generations 9', { prompt: 'x', num_generations: 9 }, 'ValidationFailed', ['/num_generations']],
      ['an unknown aspect ratio', { prompt: 'x', aspect_ratio: 'wide' }, 'ValidationFailed', ['/aspect_ratio']],
      [
        'two aspect ratios',
        { prompt: 'x', aspect_ratio: ['square', 'portrait'] },
        'ValidationFailed',
        ['/aspect_ratio'],
      ],
      ['no aspect ratio in the array', { prompt: 'x', aspect_ratio: [] }, 'ValidationFailed', ['/aspect_ratio']],
      ['an unknown scheduler', { prompt: 'x', scheduler: 'magic' }, 'ValidationFailed', ['/scheduler']],
      ['an unknown format', { prompt: 'x', output_format: 'gif' }, 'ValidationFailed', ['/output_format']],
      ['a number for a flag', { prompt: 'x', high_resolution: 1 }, 'ValidationFailed', ['/high_resolution']],
      ['a string for a flag', { prompt: 'x', prompt_weighting: 'yes' }, 'ValidationFailed', ['/prompt_weighting']],
      ['a webhook that is no URL', { prompt: 'x', webhook: 'nowhere' }, 'ValidationFailed', ['/webhook']],
      ['a webhook by ftp', { prompt: 'x', webhook: 'ftp://a.example/x' }, 'ValidationFailed', ['/webhook']],
      [
        'a webhook with a password',
        { prompt: 'x', webhook: 'https://u:p@a.example/' },
        'ValidationFailed',
        ['/webhook'],
      ],
      [
        'a webhook of 2049',
        { prompt: 'x', webhook: `https://a.example/${'x'.repeat(2031)}` },
        'ValidationFailed',
        ['/webhook'],
      ],
      ['a model that is a path', { prompt: 'x', model: '../etc' }, 'ValidationFailed', ['/model']],
      ['metadata that is an array', { prompt: 'x', metadata: [] }, 'ValidationFailed', ['/metadata']],
      ['metadata of 9 levels', { prompt: 'x', metadata: deep(9) }, 'ValidationFailed', ['/metadata']],
      ['metadata of 500 levels', { prompt: 'x', metadata: deep(500) }, 'ValidationFailed', ['/metadata']],
      ['metadata over 16 KB', { prompt: 'x', metadata: { a: 'x'.repeat(16_384) } }, 'ValidationFailed', ['/metadata']],
      ['a NUL in metadata', { prompt: 'x', metadata: { a: ['\0'] } }, 'ValidationFailed', ['/metadata']],
      [
        'a lone surrogate in a key of metadata',
        { prompt: 'x', metadata: { '\udc00': 1 } },
        'ValidationFailed',
        ['/metadata'],
      ],
      ['constructor in metadata', { prompt: 'x', metadata: { constructor: 1 } }, 'ValidationFailed', ['/metadata']],
      [
        'prototype deep in metadata',
        { prompt: 'x', metadata: { a: { prototype: 1 } } },
        'ValidationFailed',
        ['/metadata'],
      ],
      ['an unknown field', { prompt: 'x', size: 3 }, 'ValidationFailed', ['/size']],
      ['an unknown field that needs escapes', { prompt: 'x', 'a/b~c': 3 }, 'ValidationFailed', ['/a~1b~0c']],
      ['several problems', { prompt: 'x', cfg: 0, steps: 0, y: 1 }, 'ValidationFailed', ['/cfg', '/steps', '/y']],
    ];

    itOnce.each(bad)('rejects %s', async (_, body, code, pointers) => {
      const reply = await api.request<ProblemJson>('POST', '/v1/sd/text-to-image', { key, body });
      expect(reply.status).toBe(400);
      expect(reply.headers.get('content-type')).toContain('application/problem+json');
      expect(reply.body.code).toBe(code);
      expect(reply.body.errors?.map(({ pointer }) => pointer).sort()).toEqual(pointers);
      expect(reply.body.instance).toBe(reply.headers.get('x-request-id'));
    });

    const raw: [string, string, Record<string, string>, number, string][] = [
      ['a body that is not JSON', '{"prompt":', { 'content-type': 'application/json' }, 400, 'MalformedBody'],
      [
        '__proto__ in metadata',
        '{"prompt":"x","metadata":{"__proto__":{}}}',
        { 'content-type': 'application/json' },
        400,
        'ValidationFailed',
      ],
      [
        '__proto__ as a field',
        '{"prompt":"x","__proto__":{}}',
        { 'content-type': 'application/json' },
        400,
        'ValidationFailed',
      ],
      ['text', 'prompt=x', { 'content-type': 'text/plain' }, 415, 'UnsupportedMediaType'],
      ['a form', 'prompt=x', { 'content-type': 'application/x-www-form-urlencoded' }, 415, 'UnsupportedMediaType'],
      [
        'a charset nobody knows',
        '{}',
        { 'content-type': 'application/json; charset=klingon' },
        415,
        'UnsupportedMediaType',
      ],
      [
        'an encoding nobody knows',
        '{}',
        { 'content-type': 'application/json', 'content-encoding': 'x-lzma' },
        415,
        'UnsupportedMediaType',
      ],
      [
        'what is compressed',
        '{}',
        { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        415,
        'UnsupportedMediaType',
      ],
      [
        'more than 1 MB',
        JSON.stringify({ prompt: 'x'.repeat(1_000_001) }),
        { 'content-type': 'application/json' },
        413,
        'BodyTooLarge',
      ],
      [
        'a hundred thousand objects',
        `{"prompt":"x","metadata":{"a":[${'{},'.repeat(100_000)}{}]}}`,
        { 'content-type': 'application/json' },
        400,
        'ValidationFailed',
      ],
      ['ten thousand brackets', '['.repeat(10_000), { 'content-type': 'application/json' }, 400, 'MalformedBody'],
      [
        'ten thousand levels',
        `{"prompt":"x","metadata":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`,
        { 'content-type': 'application/json' },
        400,
        'ValidationFailed',
      ],
      [
        'ten thousand fields',
        JSON.stringify(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`field${i}`, 1]))),
        { 'content-type': 'application/json' },
        400,
        'ValidationFailed',
      ],
      [
        'another charset than UTF-8',
        '{"prompt":"x"}',
        { 'content-type': 'application/json; charset=utf-16' },
        415,
        'UnsupportedMediaType',
      ],
    ];

    itOnce.each(raw)('rejects %s', async (_, text, headers, status, code) => {
      const reply = await api.request<ProblemJson>('POST', '/v1/sd/text-to-image', { key, raw: text, headers });
      expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
    });

    itOnce('rejects a missing body', async () => {
      const reply = await api.request<ProblemJson>('POST', '/v1/sd/text-to-image', { key });
      expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 400, code: 'ValidationFailed' });
    });

    itOnce('stored nothing of what it rejected', async () => {
      const before = await api.dataSource.manager.count(ImageTask);
      await create({ prompt: 'x', cfg: 21 });
      expect(await api.dataSource.manager.count(ImageTask)).toBe(before);
    });
  });

  describeOnce('authentication', () => {
    it.each([
      ['no header', undefined],
      ['another scheme', 'Basic dXNlcjpwYXNz'],
      ['a key without the scheme', 'dr_000000000000_x'],
      ['an unknown key', `Bearer dr_000000000000_${'a'.repeat(43)}`],
      ['words behind the key', 'Bearer a b'],
    ])('answers 401 to %s', async (_, authorization) => {
      const reply = await api.request<ProblemJson>('GET', '/v1/sd/text-to-image', {
        ...(authorization && { headers: { authorization } }),
      });
      expect(reply.status).toBe(401);
      expect(reply.headers.get('www-authenticate')).toMatch(/^Bearer/);
      expect(reply.body.code).toBe('Unauthorized');
    });

    it('answers 401 to a wrong secret behind a known prefix, and to a revoked key', async () => {
      const wrong = `${key.token.slice(0, -1)}${key.token.endsWith('A') ? 'B' : 'A'}`;
      const revoked = await api.createKey({ revokedAt: new Date() });
      for (const token of [wrong, revoked.token])
        expect((await api.request('GET', '/v1/sd/text-to-image', { key: { token } })).status).toBe(401);
    });

    it('checks the key before the body', async () => {
      const reply = await api.request('POST', '/v1/sd/text-to-image', {
        raw: '{',
        headers: { 'content-type': 'text/plain' },
      });
      expect(reply.status).toBe(401);
    });
  });

  describeOnce('another caller', () => {
    it('gets the same as for an unknown id on every route, byte for byte', async () => {
      const other = await api.createKey();
      const { body } = await create({ prompt: 'mine' });
      const routes: [string, (id: string) => string][] = [
        ['GET', (id) => `/v1/sd/text-to-image/${id}`],
        ['POST', (id) => `/v1/sd/text-to-image/${id}/cancel`],
        ['DELETE', (id) => `/v1/sd/text-to-image/${id}`],
      ];
      for (const [method, path] of routes) {
        const foreign = await api.request<ProblemJson>(method, path(body.id), { key: other });
        for (const id of ['a'.repeat(24), 'short', '%00', "' OR 1=1 --"]) {
          const unknown = await api.request<ProblemJson>(method, path(encodeURIComponent(id).replace('%2500', '%00')), {
            key: other,
          });
          expect(unknown.status).toBe(404);
          expect(unknown.text.replace(unknown.body.instance, '')).toBe(foreign.text.replace(foreign.body.instance, ''));
        }
      }
      const mine = await api.request<GenerationJson>('GET', `/v1/sd/text-to-image/${body.id}`, { key });
      expect(mine.body).toEqual(body);
      const list = await api.request<GenerationJson[]>('GET', '/v1/sd/text-to-image', { key: other });
      expect(list.body).toEqual([]);
    });
  });

  describeOnce('list', () => {
    it('is newest first, complete by default, and paged on request', async () => {
      const reader = await api.createKey();
      const ids: string[] = [];
      for (let n = 0; n < 5; n++) {
        const { body } = await api.request<GenerationJson>('POST', '/v1/sd/text-to-image', {
          key: reader,
          body: { prompt: `${n}` },
        });
        ids.unshift(body.id);
      }
      const all = await api.request<GenerationJson[]>('GET', '/v1/sd/text-to-image', { key: reader });
      expect(all.body.map(({ id }) => id)).toEqual(ids);
      expect(all.headers.get('link')).toBeNull();
      const paged: string[] = [];
      let path: string | undefined = '/v1/sd/text-to-image?limit=2';
      while (path) {
        const page: Reply<GenerationJson[]> = await api.request<GenerationJson[]>('GET', path, { key: reader });
        paged.push(...page.body.map(({ id }) => id));
        const next: string | undefined = /^<([^>]+)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1];
        path = next && new URL(next).pathname + new URL(next).search;
      }
      expect(paged).toEqual(ids);
    });

    it.each([
      'limit=0',
      'limit=101',
      'limit=x',
      'limit=1.5',
      'limit=',
      'limit=1&limit=2',
      'after=x',
      `after=${'a'.repeat(24)}`,
    ])('rejects ?%s and names the parameter', async (query) => {
      const reply = await api.request<ProblemJson>('GET', `/v1/sd/text-to-image?${query}`, { key });
      expect(reply.status).toBe(400);
      expect(reply.body.errors?.[0].parameter).toBe(query.split('=')[0]);
    });
  });

  describe('cancel and delete', () => {
    it('cancels a queued one for good', async () => {
      const { body } = await create({ prompt: 'x' });
      const canceled = await api.request<GenerationJson>('POST', `/v1/sd/text-to-image/${body.id}/cancel`, { key });
      expect(canceled.status).toBe(201);
      expect(canceled.body.status).toBe('canceled');
      expect(canceled.body.completed_at).not.toBeNull();
      const again = await api.request<GenerationJson>('POST', `/v1/sd/text-to-image/${body.id}/cancel`, { key });
      expect(again.body).toEqual(canceled.body);
    });

    it('refuses to cancel one that has succeeded', async () => {
      const { body } = await create({ prompt: 'x' });
      await api.dataSource.manager.update(ImageTask, { id: body.id }, { status: 'succeeded', completedAt: new Date() });
      const reply = await api.request<ProblemJson>('POST', `/v1/sd/text-to-image/${body.id}/cancel`, { key });
      expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 409, code: 'GenerationTerminated' });
    });

    it('confirms a deletion and leaves no row', async () => {
      const { body } = await create({ prompt: 'x' });
      const reply = await api.request('DELETE', `/v1/sd/text-to-image/${body.id}`, { key });
      expect(reply.status).toBe(200);
      expect(reply.body).toEqual({ delete: `Generation ${body.id} has been deleted successfully.` });
      expect((await api.request('GET', `/v1/sd/text-to-image/${body.id}`, { key })).status).toBe(404);
      expect(await api.dataSource.manager.countBy(ImageTask, { id: body.id })).toBe(0);
    });
  });
});
