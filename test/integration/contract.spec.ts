import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { InferenceWorker, newIdentifier } from '@app/domain';
import type { Reply, RequestOptions, TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { failTask } from '../support/factories';
import type { Receiver } from '../support/receiver';
import { startReceiver } from '../support/receiver';
import type { World } from '../support/world';
import { allRows, makeWorld, operations, pathOf } from '../support/world';
import type { BodyRow } from './contract-table';
import { queries } from './contract-queries';
import { replies } from './contract-replies';
import { bodies } from './contract-table';

interface ProblemJson {
  status: number;
  code: string;
  instance: string;
  errors?: { pointer?: string; parameter?: string; message: string }[];
}

type Problem = Reply<ProblemJson>;

const operationOf = (id: string) => operations.find((operation) => operation.id === id)!;
const weights = readFileSync(join(__dirname, '..', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors'));
const upload: RequestOptions = { raw: weights, headers: { 'content-type': 'application/octet-stream' } };
/** All but the one with the errors of OpenAI's API. */
const ours = operations.filter(({ id }) => id !== 'createImages');
const problemKeys = ['code', 'detail', 'instance', 'status', 'title', 'type'];

describe('The contract', () => {
  let api: TestApi;
  let receiver: Receiver;
  let key: TestKey;
  let sandbox: TestKey;
  let world: World;

  beforeAll(async () => {
    [api, receiver] = [await startTestApi(), await startReceiver()];
    key = await api.createKey({ scopes: ['admin'] });
    sandbox = await api.createKey({ sandbox: true });
    world = await makeWorld(api, key, receiver);
  });

  afterAll(async () => {
    await api.close();
    await receiver.close();
  });

  /** Replaces `{style}` and the like by ids. */
  const filled = <T>(value: T, ids = world): T =>
    JSON.parse(JSON.stringify(value).replace(/\{(\w+)\}/g, (whole, name: keyof World) => ids[name] ?? whole)) as T;
  const send = <T = ProblemJson>(id: string, options: RequestOptions, query = '', ids = world): Promise<Reply<T>> =>
    api.request<T>(operationOf(id).method, pathOf(operationOf(id), ids) + query, { key, ...options });
  const around = ({ within }: BodyRow, elements: unknown[]) =>
    within ? { ...within.rest, [within.field]: elements } : elements;
  /** A body with one changed element; in an array it is the second of two. */
  const sendElement = (row: BodyRow, element: unknown): Promise<Problem> =>
    send(row.operation, { body: row.shape === 'array' ? around(row, [filled(row.valid), element]) : element });
  const at = ({ shape, within }: BodyRow, pointer: string) =>
    shape === 'array' ? `${within ? `/${within.field}` : ''}/1${pointer}` : pointer;
  const expectRefusal = (reply: Problem, code: string, pointers: string[]) => {
    expect([reply.status, reply.body.code, reply.body.errors?.map(({ pointer }) => pointer)]).toEqual([
      400,
      code,
      pointers,
    ]);
    expect(reply.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(Object.keys(reply.body).sort()).toEqual([...problemKeys, 'errors'].sort());
    expect(reply.body.instance).toBe(reply.headers.get('x-request-id'));
    for (const { message } of reply.body.errors ?? []) expect(message).toMatch(/\S/);
  };

  const named = bodies.map(
    (row) => [`${row.within ? `${row.within.field} in ` : ''}the body of ${row.operation}`, row] as const,
  );
  describe.each(named)('%s', (_, row) => {
    let before: object;
    const counts = async () =>
      Object.fromEntries(Object.entries(await allRows(api)).map(([table, rows]) => [table, rows.length]));

    describe('rejects, and stores nothing', () => {
      beforeAll(async () => {
        before = await counts();
      });

      const bad = row.fields.flatMap((field) =>
        [...field.kind.bad, ...(field.required ? [['null', null] as const] : [])].map(
          ([label, value]) => [field.name, label, value, field] as const,
        ),
      );
      it.each(bad)('%s: %s', async (name, label, value, { missingCode }) => {
        const isMissing = ['null', 'nothing', 'white space'].includes(label);
        const code = (isMissing && missingCode) || 'ValidationFailed';
        // The last element of an array is the bad one.
        const element = label.endsWith('among them') ? `/${(value as unknown[]).length - 1}` : '';
        const reply = await sendElement(row, { ...filled(row.valid), [name]: value });
        expectRefusal(reply, code, [at(row, `/${name}${element}`)]);
      });

      const required = row.fields.filter((field) => field.required);
      if (required.length > 0)
        it.each(required.map((field) => [field.name, field] as const))('%s when it is missing', async (name, field) => {
          const { [name]: _value, ...rest } = filled(row.valid);
          expectRefusal(await sendElement(row, rest), field.missingCode ?? 'ValidationFailed', [at(row, `/${name}`)]);
        });

      it.each(['unknown', 'a/b~c', 'Prompt', 'toString', ''])('an unknown field "%s"', async (name) => {
        const pointer = at(row, `/${name.replace('~', '~0').replace('/', '~1')}`);
        expectRefusal(await sendElement(row, { ...filled(row.valid), [name]: 1 }), 'ValidationFailed', [pointer]);
      });

      it.each(['__proto__', 'constructor', 'prototype'])('a field named %s', async (name) => {
        const mark = { mark: 1 };
        const body = row.shape === 'array' ? around(row, [filled(row.valid), mark]) : mark;
        const element = JSON.stringify(filled(row.valid)).replace('{', `{"${name}":{},`);
        const raw = JSON.stringify(body).replace(JSON.stringify(mark), element);
        const reply: Problem = await send(row.operation, { raw, headers: { 'content-type': 'application/json' } });
        expectRefusal(reply, 'ValidationFailed', [at(row, `/${name}`)]);
      });

      it('a hundred unknown fields, of which it lists twenty and counts the others', async () => {
        const unknown = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`unknown${i}`, i]));
        const { status, body } = await sendElement(row, { ...filled(row.valid), ...unknown });
        expect([status, body.errors?.length, body.errors?.at(-1)]).toEqual([400, 21, { message: 'and 80 more' }]);
      });

      it('everything that is wrong at once', async () => {
        const [name, , value] = bad[0];
        const reply = await sendElement(row, { ...filled(row.valid), [name]: value, unknown: 1 });
        expect([reply.status, reply.body.errors?.map(({ pointer }) => pointer).sort()]).toEqual([
          400,
          [at(row, `/${name}`), at(row, '/unknown')].sort(),
        ]);
      });

      afterAll(async () => {
        expect(await counts()).toEqual(before);
      });

      if (row.shape === 'array')
        it.each([null, 'x', 7, true, [], [[]]])('an element that is %j', async (element) => {
          expectRefusal(await sendElement(row, element), 'ValidationFailed', [at(row, '')]);
        });

      if (row.within) return;

      it.each<[string, unknown]>([
        ['null', null],
        ['a string', 'x'],
        ['a number', 7],
        ['true', true],
        row.shape === 'array' ? ['an object', {}] : ['an array', [{}]],
        ...(row.shape === 'array' ? [['an empty array', []] as [string, unknown]] : []),
        ...(row.shape === 'array' ? [['101 elements', Array(101).fill(row.valid)] as [string, unknown]] : []),
      ])('%s in its place', async (_label, body) => {
        expectRefusal(await send(row.operation, { body: filled(body) }), 'ValidationFailed', ['']);
      });

      it.each<[string, RequestOptions, number, string]>([
        ['no body', {}, 400, 'ValidationFailed'],
        [
          'bytes that are not UTF-8',
          { raw: Buffer.from('{"a":"\xff"}', 'latin1'), headers: { 'content-type': 'application/json' } },
          400,
          'MalformedBody',
        ],
        ['half of one', { raw: '{"a":', headers: { 'content-type': 'application/json' } }, 400, 'MalformedBody'],
        ['text', { raw: '{}', headers: { 'content-type': 'text/plain' } }, 415, 'UnsupportedMediaType'],
        ['no type', { raw: new TextEncoder().encode('{}') }, 415, 'UnsupportedMediaType'],
        [
          'more than 1 MB',
          { raw: `[${' '.repeat(1_000_000)}]`, headers: { 'content-type': 'application/json' } },
          413,
          'BodyTooLarge',
        ],
      ])('%s', async (_label, options, status, code) => {
        const reply: Problem = await send(row.operation, options);
        expect([reply.status, reply.body.code]).toEqual([status, code]);
      });
    });

    describe('accepts', () => {
      const good = row.fields.flatMap(({ name, kind, required }) =>
        [...kind.good, ...(required ? [] : [['null', null] as const])].map(
          ([label, value]) => [name, label, value] as const,
        ),
      );
      it.each(good)('%s: %s', async (name, _label, value) => {
        const reply = await sendElement(row, { ...filled(row.valid), [name]: filled(value) });
        // A well-formed id of nothing, and a scale without weights, are tested elsewhere.
        const impossible = name === 'id' || name === 'scale';
        expect([reply.status, reply.body.code]).toEqual(
          impossible && value !== null ? [422, expect.any(String)] : [replies[row.operation].status, undefined],
        );
      });

      it('only what is required', async () => {
        const needed = row.fields.filter(({ required }) => required).map(({ name }) => name);
        const least = Object.fromEntries(Object.entries(filled(row.valid)).filter(([name]) => needed.includes(name)));
        expect((await sendElement(row, least)).status).toBe(replies[row.operation].status);
      });

      if (row.shape === 'array' && !row.within)
        it('100 elements, and answers in the same order', async () => {
          const body = Array(100).fill(filled(row.valid));
          const reply = await send<unknown[]>(row.operation, { body });
          expect([reply.status, reply.body.length]).toEqual([201, 100]);
        });
    });

    if (row.within) return;

    it('matches the document', () => {
      const schema = documented(row);
      expect(schema.additionalProperties).toBe(false);
      expect(Object.keys(schema.properties).sort()).toEqual(row.fields.map(({ name }) => name).sort());
      expect([...(schema.required ?? [])].sort()).toEqual(
        row.fields.flatMap(({ name, required }) => (required ? [name] : [])).sort(),
      );
      for (const field of row.fields) {
        const property = schema.properties[field.name];
        expect([field.name, takesNull(property)]).toEqual([field.name, !field.required]);
        const { type, ...rest } = property;
        const plain = { ...rest, type: [type].flat().filter((each) => each !== 'null')[0] };
        expect([field.name, plain]).toEqual([field.name, expect.objectContaining(field.kind.bounds)]);
      }
    });
  });

  describe.each(queries.map((row) => [row.operation, row.name, row] as const))('%s?%s', (operation, name, row) => {
    const options = operation === 'putFinetuneWeights' ? upload : {};
    if (row.good.length > 0)
      it.each(row.good)('accepts "%s"', async (value) => {
        expect((await send(operation, options, `?${name}=${value}`)).status).toBe(200);
      });

    it.each(row.bad)('rejects "%s"', async (value) => {
      const { status, body } = await send(operation, options, `?${name}=${value}`);
      expect([status, body.code, body.errors]).toEqual([
        400,
        'ValidationFailed',
        [{ parameter: name, message: expect.any(String) as string }],
      ]);
    });
  });

  it.each(ours.map(({ id, method, path }) => [`${method} ${path}`, id] as const))(
    '%s refuses a query parameter that it does not know',
    async (_label, id) => {
      const { status, body } = await send(id, {}, '?page=2');
      expect([status, body.code, body.errors]).toEqual([
        400,
        'ValidationFailed',
        [{ parameter: 'page', message: expect.stringMatching(/^is not known/) as string }],
      ]);
    },
  );

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
      const fresh = await makeWorld(api, key, receiver);
      if (id === 'cancelGeneration') {
        const { body } = await send<{ id: string }>('createGeneration', { body: { prompt: 'a robot' } });
        fresh.generation = body.id;
      }
      if (id === 'listKeyUsage') fresh.apiKey = key.id;
      if (id === 'listFailures') {
        const { body } = await send<{ id: string }>('createGeneration', { body: { prompt: 'a robot' } });
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
      const valid = body && filled(body.shape === 'array' ? [body.valid] : body.valid, fresh);
      const options = optionsOf(id, valid);
      return (headers = {}) => send<object>(id, { ...options, headers: { ...options.headers, ...headers } }, '', fresh);
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

    const posts = operations.filter(({ method }) => method === 'POST');
    it.each(posts.map(({ id, path }) => [path, id] as const))(
      'POST %s is executed once for an Idempotency-Key',
      async (_label, id) => {
        const repeat = await request(id);
        const [first, second] = [await repeat({ 'idempotency-key': id }), await repeat({ 'idempotency-key': id })];
        expect([first.status, second.status]).toEqual([replies[id].status, replies[id].status]);
        expect([first, second].map(({ headers }) => headers.get('idempotency-replayed'))).toEqual([null, 'true']);
      },
    );

    it.each(operations.map(({ id, method, path }) => [`${method} ${path}`, id] as const))(
      '%s needs a key, and checks it before anything else',
      async (_label, id) => {
        const { method } = operationOf(id);
        const options = { key: undefined, ...(method === 'POST' && { raw: '{', headers: { 'content-type': 'x/y' } }) };
        const reply = await send(id, options, '?limit=x');
        expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="darkroom"']);
        if (id !== 'createImages') expect(Object.keys(reply.body).sort()).toEqual(problemKeys);
      },
    );
  });
});

interface SchemaJson {
  $ref?: string;
  type?: string | string[];
  anyOf?: SchemaJson[];
  properties: Record<string, SchemaJson>;
  required?: string[];
  additionalProperties: boolean;
}

/** The schema of a body's object in the committed document. */
function documented({ operation, shape, valid }: BodyRow): SchemaJson {
  const document = JSON.parse(readFileSync(join(__dirname, '..', '..', 'openapi.json'), 'utf8')) as {
    components: { schemas: Record<string, SchemaJson> };
    paths: Record<string, Record<string, { requestBody: { content: Record<string, { schema: DocumentedBody }> } }>>;
  };
  const { path, method } = operationOf(operation);
  const { schema } = document.paths[path][method.toLowerCase()].requestBody.content['application/json'];
  const element = shape === 'array' ? schema.items! : schema;
  const candidates = (element.oneOf ?? [element]).map(
    ({ $ref = '' }) => document.components.schemas[$ref.split('/').at(-1) ?? ''],
  );
  return candidates.find(({ properties }) => Object.keys(valid).every((name) => name in properties))!;
}

interface DocumentedBody {
  $ref?: string;
  oneOf?: DocumentedBody[];
  items?: DocumentedBody;
}

function takesNull({ type, anyOf = [] }: SchemaJson): boolean {
  return [type].flat().includes('null') || anyOf.some(takesNull);
}
