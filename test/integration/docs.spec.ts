import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorCodes, errorTable } from '@app/domain';
import { createConfig, lint } from '@redocly/openapi-core';
import type { RulesetDefinition } from '@stoplight/spectral-core';
import { Spectral } from '@stoplight/spectral-core';
import { oas } from '@stoplight/spectral-rulesets';
import type { Application } from 'express';
import { errorsPage } from '../../apps/api/src/docs/errors-page';
import { serializeDocument } from '../../apps/api/src/serialize-document';
import type { TestApi } from '../support/api';
import { startTestApi } from '../support/api';
import { pageOfTag, referencePages } from '../support/docs-pages';
import { startReceiver } from '../support/receiver';

interface OperationJson {
  operationId: string;
  summary?: string;
  description?: string;
  parameters?: { in: string; name: string; required?: boolean; schema: { pattern?: string } }[];
  requestBody?: { content: Record<string, { schema: { $ref: string } }> };
  security?: unknown[];
  tags?: string[];
}

interface DocumentJson {
  servers: { url: string; variables?: object }[];
  tags: { name: string }[];
  components: {
    schemas: Record<string, { properties?: Record<string, { type?: string | string[]; items?: object }> }>;
    responses: Record<string, { description: string; content: Record<string, { example: object }> }>;
  };
  paths: Record<string, Record<string, OperationJson>>;
  webhooks: Record<string, { post: OperationJson }>;
}

const file = join(__dirname, '..', '..', 'openapi.json');
const committed = readFileSync(file, 'utf8');

/** What a page has from the heading with an id to the next one. */
function sectionOf(text: string, id: string): string[] {
  const [, after] = text.split(`id="${id}"`);
  return after === undefined ? [] : [after.split(/<h[1-4]/)[0]];
}

describe('Documentation', () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startTestApi({ PUBLIC_URL: 'https://pictures.example' });
  });

  afterAll(() => api.close());

  it('is the committed document; "npm run openapi" updates it', async () => {
    expect(await serializeDocument()).toBe(committed);
  });

  it('has a page of every error; "npm run openapi" updates it', () => {
    const page = readFileSync(join(__dirname, '..', '..', 'docs', 'errors.md'), 'utf8');
    expect(errorsPage()).toBe(page);
    for (const { codes } of Object.values(errorTable))
      for (const code of Object.keys(codes)) expect(page).toContain(`| \`${code}\` |`);
  });

  it('serves it without a key, with the address of the request', async () => {
    const { status, headers, body } = await api.request<DocumentJson>('GET', '/openapi.json');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    const { servers, ...document } = body;
    const { servers: anyServer, ...rest } = JSON.parse(committed) as DocumentJson;
    expect(servers).toEqual([{ url: 'https://pictures.example', description: 'This service.' }, ...anyServer]);
    expect(document).toEqual(rest);
    expect(anyServer).toMatchObject([{ variables: { host: { default: 'localhost:3000' } } }]);
  });

  it("has the same headers on an error in the shape of OpenAI's API as on any other", () => {
    type Errors = Record<string, { headers: object; description: string }>;
    const { paths, components } = JSON.parse(committed) as {
      paths: Record<string, Record<string, { responses: Errors }>>;
      components: { responses: Errors };
    };
    const errors = Object.entries(paths['/v1/images/generations'].post.responses).filter(([status]) => status >= '400');
    expect(errors.length).toBeGreaterThan(5);
    for (const [status, { headers }] of errors)
      expect([status, headers]).toEqual([status, components.responses[`Problem${status}`].headers]);
  });

  it('breaks no rule that redocly recommends, and its examples are valid', async () => {
    const rules = { 'no-invalid-schema-examples': 'error', 'no-invalid-parameter-examples': 'error' } as const;
    const problems = await lint({ ref: file, config: await createConfig({ extends: ['recommended'], rules }) });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  });

  it('breaks no rule that spectral recommends', async () => {
    const spectral = new Spectral();
    spectral.setRuleset({ extends: [oas as RulesetDefinition] });
    const problems = await spectral.run(JSON.parse(committed) as Record<string, unknown>);
    expect(problems.map(({ code, message, path }) => [code, message, path.join('/')])).toEqual([]);
  });

  it('tells what each operation and webhook does', () => {
    const { paths, webhooks } = JSON.parse(committed) as DocumentJson;
    const operations = [...Object.values(paths), ...Object.values(webhooks)].flatMap((item) => Object.values(item));
    expect(operations.length).toBeGreaterThan(30);
    const untold = operations.filter(({ summary, description = '' }) => !summary || description.length < 20);
    expect(untold.map(({ operationId }) => operationId)).toEqual([]);
  });

  it('describes the webhooks as they are sent', async () => {
    const { webhooks, components } = JSON.parse(committed) as DocumentJson;
    const receiver = await startReceiver();
    const key = await api.createKey({ sandbox: true });
    const { body: finetune } = await api.request<{ id: string }>('POST', '/v1/finetunes', {
      key,
      body: { name: 'star' },
    });
    const body = { prompt: 'a star', webhook: receiver.url };
    await api.request('POST', '/v1/sd/text-to-image', { key, body });
    const ofGeneration = await receiver.next(1);
    await api.request('POST', `/v1/finetunes/${finetune.id}/prompts`, { key, body: [body] });
    const ofPrompt = await receiver.next(2);
    await receiver.close();
    const sent = { generationTerminated: ofGeneration, promptTerminated: ofPrompt };
    expect(Object.keys(webhooks).sort()).toEqual(Object.keys(sent).sort());
    for (const [name, { headers, body: text }] of Object.entries(sent)) {
      const { parameters = [], requestBody } = webhooks[name].post;
      expect(parameters.filter((parameter) => parameter.in === 'header' && parameter.required)).toHaveLength(3);
      for (const parameter of parameters)
        expect(headers[parameter.name]).toMatch(new RegExp(parameter.schema.pattern ?? 'no pattern'));
      const { $ref } = requestBody!.content['application/json'].schema;
      const { properties = {} } = components.schemas[$ref.split('/').at(-1) ?? ''];
      expect(Object.keys(JSON.parse(text) as object).sort()).toEqual(Object.keys(properties).sort());
    }
  });

  it('has every code of an error as an enum, and asks for a key by no format', () => {
    const { components } = JSON.parse(committed) as DocumentJson & { components: { schemas: object } };
    expect(components.schemas.ErrorCode).toMatchObject({ enum: [...errorCodes] });
    const codes = [components.schemas.Problem, components.schemas.OpenaiError].map(
      ({ properties }) => properties?.code,
    );
    expect(codes).toEqual([expect.anything(), expect.anything()]);
    for (const code of codes) expect(code).toMatchObject({ $ref: '#/components/schemas/ErrorCode' });
    expect(committed).not.toContain('bearerFormat');
  });

  it('documents every route of /v1, and no others', () => {
    const { stack } = (api.app.getHttpAdapter().getInstance() as Application).router as unknown as {
      stack: { route?: { path: string; methods: Record<string, boolean> } }[];
    };
    const served = stack.flatMap(({ route }) =>
      route?.path.startsWith('/v1/')
        ? Object.keys(route.methods).map((method) => `${method} ${route.path.replace(/:(\w+)/g, '{$1}')}`)
        : [],
    );
    const { paths } = JSON.parse(committed) as DocumentJson;
    const documented = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`),
    );
    expect(documented.sort()).toEqual(served.sort());
  });

  it('names every operation once, asks for a key and files it under a described tag', () => {
    const { paths, tags } = JSON.parse(committed) as DocumentJson;
    const operations = Object.values(paths).flatMap((item) => Object.values(item));
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { security } of operations) expect(security).toEqual([{ bearer: [] }]);
    const used = new Set(operations.flatMap((operation) => operation.tags));
    expect(tags.map(({ name }) => name).sort()).toEqual([...used].sort());
  });

  it('has an example for each field', () => {
    const { components } = JSON.parse(committed) as DocumentJson;
    const speaksForItself = (property: object) =>
      ['example', 'enum', '$ref', 'anyOf', 'oneOf'].some((name) => name in property);
    const bare = Object.entries(components.schemas).flatMap(([schema, { properties = {} }]) =>
      Object.entries(properties).flatMap(([field, property]) =>
        speaksForItself(property) || [property.type].flat().includes('boolean') || property.items
          ? []
          : [`${schema}.${field}`],
      ),
    );
    expect(bare).toEqual([]);
  });

  it('lists every kind of error with its codes, except those that no documented route has', () => {
    const { components } = JSON.parse(committed) as DocumentJson;
    const told = Object.entries(components.responses);
    const kinds = Object.values(errorTable).filter(({ status }) => status !== 405 && status !== 500);
    expect(told.map(([name]) => name).sort()).toEqual(kinds.map(({ status }) => `Problem${status}`).sort());
    const untold = kinds.flatMap(({ status, title, codes }) => {
      const { description, content } = components.responses[`Problem${status}`];
      expect(content['application/problem+json'].example).toMatchObject({ status, title });
      return Object.keys(codes).filter((code) => !description.includes(`\`${code}\``));
    });
    expect(untold).toEqual(['ImageNotFound', 'RouteNotFound']);
  });

  it('is readable at /docs/reference: every operation, every webhook and every field', async () => {
    const { paths, webhooks, components } = JSON.parse(committed) as DocumentJson;
    const pages = await Promise.all(
      referencePages.map(async (name) => [name, (await api.request('GET', `/docs/${name}`)).text] as const),
    );
    const textOf = new Map(pages);
    for (const [path, item] of Object.entries(paths))
      for (const [method, { operationId, tags = [] }] of Object.entries(item))
        expect(textOf.get(pageOfTag(tags[0]))).toContain(
          `id="${operationId}"><code>${method.toUpperCase()} ${path}</code>`,
        );
    for (const [name, { post }] of Object.entries(webhooks))
      expect(textOf.get('reference/webhooks')).toContain(`id="${post.operationId}">Webhook <code>${name}</code>`);
    for (const [name, { properties = {} }] of Object.entries(components.schemas)) {
      const found = pages.flatMap(([, text]) => sectionOf(text, `schema-${name}`));
      expect([name, found.length]).toEqual([name, 1]);
      for (const field of Object.keys(properties)) expect(found[0]).toContain(`<td><code>${field}</code>`);
    }
  });

  it('answers 405 with the allowed methods, and 404 if there are none', async () => {
    const wrong = await api.request('PATCH', '/v1/sd/text-to-image');
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get('allow')).toBe('GET, HEAD, POST');
    expect(wrong.body).toMatchObject({ code: 'MethodNotAllowed', status: 405 });
    const nowhere = await api.request('GET', '/v1/nowhere');
    expect(nowhere.body).toMatchObject({ code: 'RouteNotFound', status: 404 });
  });
});
