import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorTable } from '@app/domain';
import type { Application } from 'express';
import { errorsPage } from '../../apps/api/src/docs/errors-page';
import { serializeDocument } from '../../apps/api/src/serialize-document';
import type { TestApi } from '../support/api';
import { startTestApi } from '../support/api';

interface OperationJson {
  operationId: string;
  security?: unknown[];
  tags?: string[];
}

interface DocumentJson {
  servers?: { url: string }[];
  tags: { name: string }[];
  components: {
    schemas: Record<string, { properties?: Record<string, { type?: string; items?: object }> }>;
    responses: Record<string, { description: string; content: Record<string, { example: object }> }>;
  };
  paths: Record<string, Record<string, OperationJson>>;
}

const committed = readFileSync(join(__dirname, '..', '..', 'openapi.json'), 'utf8');

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
      for (const code of codes) expect(page).toContain(`| \`${code}\` |`);
  });

  it('serves it without a key, with the address of the request', async () => {
    const { status, headers, body } = await api.request<DocumentJson>('GET', '/openapi.json');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    const { servers, ...document } = body;
    expect(servers).toEqual([{ url: 'https://pictures.example' }]);
    expect(document).toEqual(JSON.parse(committed));
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
      ['example', 'enum', '$ref', 'allOf', 'anyOf', 'oneOf', 'default'].some((name) => name in property);
    const bare = Object.entries(components.schemas).flatMap(([schema, { properties = {} }]) =>
      Object.entries(properties).flatMap(([field, property]) =>
        speaksForItself(property) || property.type === 'boolean' || property.items ? [] : [`${schema}.${field}`],
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
      return codes.filter((code) => !description.includes(`\`${code}\``));
    });
    expect(untold).toEqual(['ImageNotFound', 'RouteNotFound']);
  });

  it('is readable at /docs, the only place where a page may carry styles', async () => {
    const page = await api.request('GET', '/docs');
    expect(page.status).toBe(200);
    expect(page.text).toContain('swagger-ui-bundle.js');
    for (const file of ['swagger-ui-bundle.js', 'swagger-ui.css', 'swagger-ui-init.js'])
      expect((await api.request('GET', `/docs/${file}`)).status).toBe(200);
    expect(page.headers.get('content-security-policy')).toMatch(/style-src 'self' 'unsafe-inline'/);
    expect(page.headers.get('content-security-policy')).toMatch(/script-src 'self'(;|$)/);
    const other = await api.request('GET', '/docsx');
    expect(other.headers.get('content-security-policy')).not.toContain('unsafe-inline');
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
