import { InferenceWorker, newIdentifier } from '@app/domain';
import type { RequestOptions, TestKey } from '../support/api';
import { ContractCaller, operationOf, problemKeys, upload } from '../support/contract-caller';
import { failTask } from '../support/factories';
import { operations } from '../support/world';
import { replies } from './contract-replies';
import { bodies } from './contract-table';

describe('The contract', () => {
  let caller: ContractCaller;
  let sandbox: TestKey;

  beforeAll(async () => {
    caller = await ContractCaller.start();
    sandbox = await caller.api.createKey({ sandbox: true });
  });
  afterAll(() => caller.close());

  describe('replies', () => {
    /** A request that succeeds. */
    const optionsOf = (id: string, valid: unknown): RequestOptions => {
      if (id === 'putFinetuneWeights') return upload;
      if (id === 'createImages') return { key: sandbox, body: { prompt: 'a robot' } };
      if (id === 'createKey') return { body: { name: 'shop' } };
      if (['updateKey', 'rotateKey', 'rotateWebhookSecret'].includes(id)) return { body: {} };
      return valid ? { body: valid } : {};
    };

    /** Makes such a request possible, and returns what sends it. */
    const request = async (id: string) => {
      const { api, key } = caller;
      const fresh = operationOf(id).method === 'GET' ? { ...caller.world } : await caller.makeWorld();
      if (id === 'cancelGeneration') {
        const { body } = await caller.send<{ id: string }>('createGeneration', { body: { prompt: 'a robot' } });
        fresh.generation = body.id;
      }
      if (id === 'listKeyUsage') fresh.apiKey = key.id;
      if (id === 'listFailures') {
        const { body } = await caller.send<{ id: string }>('createGeneration', { body: { prompt: 'a robot' } });
        await failTask(api, body.id, 'It could not be drawn.');
      }
      if (id === 'listWorkers')
        await api.dataSource.manager.insert(InferenceWorker, {
          id: newIdentifier(),
          devices: ['cpu'],
          startedAt: new Date(),
          heartbeatAt: new Date(),
        });
      const body = bodies.find(({ operation, within }) => operation === id && !within);
      const valid = body && caller.filled(body.shape === 'array' ? [body.valid] : body.valid, fresh);
      const options = optionsOf(id, valid);
      return (headers = {}) =>
        caller.send<object>(id, { ...options, headers: { ...options.headers, ...headers } }, '', fresh);
    };

    it('has a row for every operation', () => {
      expect(Object.keys(replies).sort()).toEqual(operations.map(({ id }) => id).sort());
    });

    it.each(operations.map(({ id, method, path }) => [`${method} ${path}`, id] as const))(
      '%s has these keys and no others',
      async (_label, id) => {
        const row = replies[id];
        const reply = await (await request(id))();
        expect([reply.status, reply.headers.get('content-type')?.split(';')[0]]).toEqual([
          row.status,
          row.contentType ?? 'application/json',
        ]);
        expect(reply.headers.get('x-request-id')).toMatch(/^\S+$/);
        if (row.contentType) return;
        expect(Array.isArray(reply.body)).toBe(row.isArray ?? false);
        const elements = [reply.body].flat();
        expect(elements.length).toBeGreaterThan(0);
        for (const element of elements) expect(Object.keys(element).sort()).toEqual([...row.keys].sort());
      },
    );

    /** Rows of the tables that requests add to; those of webhooks grow on their own. */
    const rowCounts = (): Promise<unknown[]> =>
      caller.api.dataSource.query(
        ['generations', 'image_tasks', 'finetunes', 'collections', 'styles', 'api_keys']
          .map((table) => `SELECT '${table}' AS of, count(*)::int AS rows FROM ${table}`)
          .join(' UNION ALL '),
      );
    /** A secret is shown once and not kept for the repeat. */
    const withoutSecrets = (text: string): string => text.replace(/"(?:token|webhook_secret)":(?:"[^"]*"|null),?/g, '');

    const posts = operations.filter(({ method }) => method === 'POST');
    it.each(posts.map(({ id, path }) => [path, id] as const))(
      'POST %s is executed once for an Idempotency-Key',
      async (_label, id) => {
        const repeat = await request(id);
        const first = await repeat({ 'idempotency-key': id });
        const before = await rowCounts();
        const second = await repeat({ 'idempotency-key': id });
        expect(await rowCounts()).toEqual(before);
        expect(withoutSecrets(second.text)).toBe(withoutSecrets(first.text));
        expect([first.status, second.status]).toEqual([replies[id].status, replies[id].status]);
        expect([first, second].map(({ headers }) => headers.get('idempotency-replayed'))).toEqual([null, 'true']);
      },
    );

    it.each(operations.map(({ id, method, path }) => [`${method} ${path}`, id] as const))(
      '%s needs a key, and checks it before anything else',
      async (_label, id) => {
        const { method } = operationOf(id);
        const options = { key: undefined, ...(method === 'POST' && { raw: '{', headers: { 'content-type': 'x/y' } }) };
        const reply = await caller.send(id, options, '?limit=x');
        expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="darkroom"']);
        if (id !== 'createImages') expect(Object.keys(reply.body).sort()).toEqual(problemKeys);
      },
    );
  });
});
