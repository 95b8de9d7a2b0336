import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RequestOptions } from '../support/api';
import { ContractCaller, operationOf, problemKeys, upload } from '../support/contract-caller';
import type { ProblemReply } from '../support/contract-caller';
import { allRows, operations } from '../support/world';
import type { BodyRow } from './contract-table';
import { queries } from './contract-queries';
import { replies } from './contract-replies';
import { bodies } from './contract-table';

/** All but the one with the errors of OpenAI's API. */
const ours = operations.filter(({ id }) => id !== 'createImages');

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
        [...field.kind.bad, ...(field.required ? [['null', null] as const] : [])].map(
          ([label, value]) => [field.name, label, value, field] as const,
        ),
      );
      it.each(bad)('%s: %s', async (name, label, value, { missingCode }) => {
        const isMissing = ['null', 'nothing', 'white space'].includes(label);
        const code = (isMissing && missingCode) || 'ValidationFailed';
        // The last element of an array is the bad one.
        const element = label.endsWith('among them') ? `/${(value as unknown[]).length - 1}` : '';
        const reply = await sendElement(row, { ...caller.filled(row.valid), [name]: value });
        expectRefusal(reply, code, [at(row, `/${name}${element}`)]);
      });

      const required = row.fields.filter((field) => field.required);
      if (required.length > 0)
        it.each(required.map((field) => [field.name, field] as const))('%s when it is missing', async (name, field) => {
          const { [name]: _value, ...rest } = caller.filled(row.valid);
          expectRefusal(await sendElement(row, rest), field.missingCode ?? 'ValidationFailed', [at(row, `/${name}`)]);
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
        const reply: ProblemReply = await caller.send(row.operation, options);
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
        const reply = await sendElement(row, { ...caller.filled(row.valid), [name]: caller.filled(value) });
        // A well-formed id of nothing, and a scale without weights, are tested elsewhere.
        const impossible = name === 'id' || name === 'scale';
        expect([reply.status, reply.body.code]).toEqual(
          impossible && value !== null ? [422, expect.any(String)] : [replies[row.operation].status, undefined],
        );
      });

      it('only what is required', async () => {
        const needed = row.fields.filter(({ required }) => required).map(({ name }) => name);
        const least = Object.fromEntries(
          Object.entries(caller.filled(row.valid)).filter(([name]) => needed.includes(name)),
        );
        expect((await sendElement(row, least)).status).toBe(replies[row.operation].status);
      });

      if (row.shape === 'array' && !row.within)
        it('100 elements, and answers in the same order', async () => {
          const body = Array(100).fill(caller.filled(row.valid));
          const reply = await caller.send<unknown[]>(row.operation, { body });
          expect([reply.status, reply.body.length]).toEqual([201, 100]);
        });
    });

    if (row.within) return;

    it('has the fields, the required ones and the bounds that the document states', () => {
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
        expect((await caller.send(operation, options, `?${name}=${value}`)).status).toBe(200);
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
