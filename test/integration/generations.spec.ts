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

    it('names all parameters of a query that are wrong', async () => {
      const query = 'limit=x&order=y&status=done&created_after=today&created_before=2026-11-20&after=x&page=2';
      const { body } = await api.request<ProblemJson>('GET', `/v1/sd/text-to-image?${query}`, { key });
      const names = ['order', 'page', 'limit', 'after', 'status', 'created_after'];
      expect(body.errors?.map(({ parameter }) => parameter)).toEqual(names);
      expect(body.detail).toMatch(/^The query parameter "order" is not known here; .+ \(one of 6 problems\)\.$/);
    });

    it('counts those of a query that are more than twenty', async () => {
      const query = Array.from({ length: 23 }, (_, i) => `x${i}`).join('&');
      const { body } = await api.request<ProblemJson>('GET', `/v1/sd/text-to-image?${query}`, { key });
      expect([body.errors?.length, body.errors?.at(-1)]).toEqual([21, { message: 'and 3 more' }]);
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
