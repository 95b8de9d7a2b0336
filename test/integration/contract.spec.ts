import { InferenceWorker, newIdentifier } from '@app/domain';
import type { RequestOptions } from '../support/api';
import { ContractCaller, operationOf, problemKeys, type ProblemReply, upload } from '../support/contract-caller';
import { failTask } from '../support/factories';
import { smallPicture } from '../support/small-picture';
import { allRows, operations } from '../support/world';
import { ofSuite } from '../support/of-suite';
import { bodies, type BodyRow, queries, replies } from './contract-document';

const inOpenaiShape = (id: string): boolean => ['createImages', 'editImages'].includes(id);
/** All but those with the errors of OpenAI's API. */
const ours = operations.filter(({ id }) => !inOpenaiShape(id));

/** A form with texts and files, as a client sends it. */
function formOf(texts: Record<string, string>, files: Record<string, Buffer>): RequestOptions {
  const boundary = 'boundary-of-a-test';
  const part = (name: string, more = '') =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`;
  const parts = [
    ...Object.entries(texts).map(([name, text]) => Buffer.from(`${part(name)}${text}\r\n`)),
    ...Object.entries(files).map(([name, file]) =>
      Buffer.concat([Buffer.from(part(name, `; filename="${name}.png"`)), file, Buffer.from('\r\n')]),
    ),
    Buffer.from(`--${boundary}--\r\n`),
  ];
  const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` };
  return { raw: Buffer.concat(parts), headers };
}

/** The code of a field's absence, where it has its own. */
const missingCode = ({ operation }: BodyRow, name: string): string | undefined => {
  if (name === 'prompt') return 'PromptMissing';
  return operation === 'createFinetuneOrGeneration' && name === 'name' ? 'FineTuneNameMissing' : undefined;
};

/** No ControlNet is installed. */
const needsControl = ({ within }: BodyRow, value?: unknown): boolean =>
  within?.field === 'control' || (Array.isArray(value) && isControl(value[0]));
const isControl = (value: unknown): boolean => typeof value === 'object' && value !== null && 'model' in value;

const ofTraining = ['captions', 'steps', 'seed', 'webhook', 'user', 'prompts', 'styles'];

describe('The contract', () => {
  let caller: ContractCaller;

  beforeAll(async () => {
    caller = await ContractCaller.start();
  });
  afterAll(() => caller.close());

  const around = ({ within }: BodyRow, elements: unknown[]) =>
    within ? { ...within.rest, [within.field]: elements } : elements;
  /** A body with one changed element; in an array it is the second of two. */
  const sendElement = (row: BodyRow, element: unknown): Promise<ProblemReply> =>
    caller.send(row.operation, {
      body: row.shape === 'array' ? around(row, [caller.filled(row.valid), element]) : element,
    });
  const at = ({ shape, within }: BodyRow, pointer: string) =>
    shape === 'array' ? `${within ? `/${within.field}` : ''}/1${pointer}` : pointer;
  const expectRefusal = (reply: ProblemReply, code: string, pointers: string[]) => {
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
      Object.fromEntries(Object.entries(await allRows(caller.api)).map(([table, rows]) => [table, rows.length]));

    describe('rejects, and stores nothing', () => {
      beforeAll(async () => {
        before = await counts();
      });

      const bad = row.fields.flatMap((field) =>
        [...field.bad, ...(field.required ? [['null', null] as const] : [])].map(
          ([label, value]) => [field.name, label, value] as const,
        ),
      );
      it.each(bad)('%s: %s', async (name, label, value) => {
        const isMissing = ['null', 'nothing', 'white space'].includes(label);
        const code = (isMissing && missingCode(row, name)) || 'ValidationFailed';
        // The last element of an array is the bad one.
        const element = label.endsWith('among them') ? `/${(value as unknown[]).length - 1}` : '';
        const reply = await sendElement(row, { ...caller.filled(row.valid), [name]: value });
        expectRefusal(reply, code, [at(row, `/${name}${element}`)]);
      });

      const required = row.fields.filter((field) => field.required);
      if (required.length > 0)
        it.each(required.map((field) => field.name))('%s when it is missing', async (name) => {
          const { [name]: _value, ...rest } = caller.filled(row.valid);
          expectRefusal(await sendElement(row, rest), missingCode(row, name) ?? 'ValidationFailed', [
            at(row, `/${name}`),
          ]);
        });

      it.each(['unknown', 'a/b~c', 'Prompt', 'toString', ''])('an unknown field "%s"', async (name) => {
        const pointer = at(row, `/${name.replace('~', '~0').replace('/', '~1')}`);
        expectRefusal(await sendElement(row, { ...caller.filled(row.valid), [name]: 1 }), 'ValidationFailed', [
          pointer,
        ]);
      });

      it.each(['__proto__', 'constructor', 'prototype'])('a field named %s', async (name) => {
        const mark = { mark: 1 };
        const body = row.shape === 'array' ? around(row, [caller.filled(row.valid), mark]) : mark;
        const element = JSON.stringify(caller.filled(row.valid)).replace('{', `{"${name}":{},`);
        const raw = JSON.stringify(body).replace(JSON.stringify(mark), element);
        const reply: ProblemReply = await caller.send(row.operation, {
          raw,
          headers: { 'content-type': 'application/json' },
        });
        expectRefusal(reply, 'ValidationFailed', [at(row, `/${name}`)]);
      });

      it('a hundred unknown fields, of which it lists twenty and counts the others', async () => {
        const unknown = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`unknown${i}`, i]));
        const { status, body } = await sendElement(row, { ...caller.filled(row.valid), ...unknown });
        expect([status, body.errors?.length, body.errors?.at(-1)]).toEqual([400, 21, { message: 'and 80 more' }]);
      });

      it('everything that is wrong at once', async () => {
        const [name, , value] = bad[0];
        const reply = await sendElement(row, { ...caller.filled(row.valid), [name]: value, unknown: 1 });
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
        expectRefusal(await caller.send(row.operation, { body: caller.filled(body) }), 'ValidationFailed', ['']);
      });

      it.each<[string, RequestOptions, number, string]>([
        ...(row.required ? [['no body', {}, 400, 'ValidationFailed'] as [string, RequestOptions, number, string]] : []),
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
        const reply: ProblemReply = await caller.send(row.operation, options);
        expect([reply.status, reply.body.code]).toEqual([status, code]);
      });
    });

    describe('accepts', () => {
      const good = row.fields.flatMap(({ name, good: values, required }) =>
        [...values, ...(required ? [] : [['null', null] as const])].map(
          ([label, value]) => [name, label, value] as const,
        ),
      );
      it.each(good)('%s: %s', async (name, _label, value) => {
        const other = value !== null && { width: { height: 256 }, height: { width: 256 } }[name];
        const reply = await sendElement(row, { ...caller.filled(row.valid), ...other, [name]: caller.filled(value) });
        // A well-formed id of nothing, a scale without weights, a mask without a picture, references of another model
        // than FLUX.2, and what is of a training without its pictures are tested elsewhere.
        const isOfTraining = row.operation === 'createFinetuneOrGeneration' && ofTraining.includes(name);
        const isAlone = isOfTraining || ['id', 'strength', 'mask'].includes(name) || (name === 'scale' && !row.within);
        const isLookedAt = name === 'references' && Array.isArray(value) && value.length > 0;
        // No safety checker is installed.
        const isFiltered = name === 'filter' && (value === 'report' || value === 'block');
        const impossible = needsControl(row, value) || isLookedAt || isFiltered || (isAlone && value !== null);
        if (row.operation === 'updateKey' && name === 'account' && value !== null)
          // An account is named once, and all these values are for one key.
          expect([200, 409]).toContain(reply.status);
        else
          expect([reply.status, reply.body.code]).toEqual(
            impossible ? [422, expect.any(String)] : [replies[row.operation].status, undefined],
          );
      });

      it('only what is required', async () => {
        const needed = row.fields.filter(({ required }) => required).map(({ name }) => name);
        const least = Object.fromEntries(
          Object.entries(caller.filled(row.valid)).filter(([name]) => needed.includes(name)),
        );
        expect((await sendElement(row, least)).status).toBe(needsControl(row) ? 422 : replies[row.operation].status);
      });

      if (row.shape === 'array' && !row.within)
        it('100 elements, and answers in the same order', async () => {
          const body = Array(100).fill(caller.filled(row.valid));
          const reply = await caller.send<unknown[]>(row.operation, { body });
          expect([reply.status, reply.body.length]).toEqual([201, 100]);
        });
    });
  });

  describe.each(queries.map((row) => [row.operation, row.name, row] as const))('%s?%s', (operation, name, row) => {
    const options = operation === 'putFinetuneWeights' ? upload : {};
    if (row.good.length > 0)
      it.each(row.good)('accepts "%s"', async (value) => {
        // Weights that were sent have no other dialect; those that were trained are tested elsewhere.
        const status = name === 'dialect' ? 422 : 200;
        expect((await caller.send(operation, options, `?${name}=${value}`)).status).toBe(status);
      });

    it.each(row.bad)('rejects "%s"', async (value) => {
      const { status, body } = await caller.send(operation, options, `?${name}=${value}`);
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
      const { status, body } = await caller.send(id, {}, '?page=2');
      expect([status, body.code, body.errors]).toEqual([
        400,
        'ValidationFailed',
        [{ parameter: 'page', message: expect.stringMatching(/^is not known/) as string }],
      ]);
    },
  );

  describe('replies', () => {
    const sandbox = ofSuite(() => caller.api.createKey({ sandbox: true }));
    let picture: Buffer;
    beforeAll(async () => {
      picture = await smallPicture();
    });

    /** A request that succeeds. */
    const optionsOf = (id: string, valid: unknown): RequestOptions => {
      if (id === 'putFinetuneWeights') return upload;
      if (['createUpload', 'verifyPicture'].includes(id)) return { raw: picture };
      if (id === 'createImages') return { key: sandbox, body: { prompt: 'a robot' } };
      if (id === 'editImages') return { key: sandbox, ...formOf({ prompt: 'a robot' }, { image: picture }) };
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
      if (id === 'cancelPrompt') {
        const { body } = await caller.send<{ id: string }[]>(
          'createPrompts',
          { body: [{ prompt: 'a robot' }] },
          '',
          fresh,
        );
        fresh.prompt = body[0].id;
      }
      if (['cancelFinetune', 'streamFinetuneEvents'].includes(id)) {
        const images = [1, 2, 3, 4].map((n) => `https://example.com/robot-${n}.png`);
        const { body } = await caller.send<{ id: string }>('createFinetuneOrGeneration', {
          body: { name: 'robot', images_url: images },
        });
        fresh.finetune = body.id;
        if (id === 'streamFinetuneEvents') await caller.send('cancelFinetune', {}, '', fresh);
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
          models: [],
          startedAt: new Date(),
          heartbeatAt: new Date(),
        });
      const body = bodies.find(({ operation, within }) => operation === id && !within);
      const valid = body && caller.filled(body.shape === 'array' ? [body.valid] : body.valid, fresh);
      const options = optionsOf(id, valid);
      return (headers = {}) =>
        caller.send<object>(id, { ...options, headers: { ...options.headers, ...headers } }, '', fresh);
    };

    it.each(operations.map(({ id, method, path }) => [`${method} ${path}`, id] as const))(
      '%s has these keys and no others',
      async (_label, id) => {
        const row = replies[id];
        const reply = await (await request(id))();
        expect([reply.status, reply.headers.get('content-type')?.split(';')[0]]).toEqual([row.status, row.contentType]);
        expect(reply.headers.get('x-request-id')).toMatch(/^\S+$/);
        if (row.contentType !== 'application/json') return;
        expect(Array.isArray(reply.body)).toBe(row.isArray);
        const elements = [reply.body].flat();
        expect(elements.length).toBeGreaterThan(0);
        for (const element of elements) {
          expect(Object.keys(element)).toEqual(expect.arrayContaining([...row.required]));
          expect(Object.keys(element).filter((name) => !row.keys.includes(name))).toEqual([]);
        }
      },
    );

    /** Rows of the tables that requests add to; those of webhooks grow on their own. */
    const rowCounts = (): Promise<unknown[]> =>
      caller.api.dataSource.query(
        ['generations', 'tasks', 'finetunes', 'collections', 'styles', 'api_keys', 'uploaded_pictures']
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
        if (!inOpenaiShape(id)) expect(Object.keys(reply.body).sort()).toEqual(problemKeys);
      },
    );
  });
});
