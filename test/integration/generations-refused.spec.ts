import { ImageTask } from '@app/domain';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';

interface ProblemJson {
  code: string;
  instance: string;
  errors?: { pointer?: string }[];
}

describe('Generations', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
  });

  afterAll(() => api.close());

  describe('create', () => {
    it('rejects a model that is neither installed nor has a stand-in', async () => {
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

    it.each(bad)('rejects %s', async (_, body, code, pointers) => {
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

    it.each(raw)('rejects %s', async (_, text, headers, status, code) => {
      const reply = await api.request<ProblemJson>('POST', '/v1/sd/text-to-image', { key, raw: text, headers });
      expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
    });

    it('rejects a missing body', async () => {
      const reply = await api.request<ProblemJson>('POST', '/v1/sd/text-to-image', { key });
      expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 400, code: 'ValidationFailed' });
    });

    it('stored nothing of what it rejected', async () => {
      const before = await api.dataSource.manager.count(ImageTask);
      await api.request('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'x', cfg: 21 } });
      expect(await api.dataSource.manager.count(ImageTask)).toBe(before);
    });
  });
});
