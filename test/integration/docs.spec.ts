import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorCodes, problemType } from '@app/domain';
import { createConfig, lint } from '@redocly/openapi-core';
import type { Application } from 'express';
import { errorsPage } from '../../apps/api/src/docs/errors-page';
import { serializeDocument } from '../../apps/api/src/serialize-document';
import { startTestApi } from '../support/api';
import type { ProblemJson } from '../support/factories';
import { guides, referencePages } from '../support/docs-pages';
import { startReceiver } from '../support/receiver';
import { ofSuite } from '../support/of-suite';

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

const names = [...guides, ...referencePages];

describe('Documentation', () => {
  const api = ofSuite(() => startTestApi({ PUBLIC_URL: 'https://pictures.example' }));

  it('is the committed document; "npm run openapi" updates it', async () => {
    expect(await serializeDocument()).toBe(committed);
  });

  it('has a page of every error; "npm run openapi" updates it', () => {
    const page = readFileSync(join(__dirname, '..', '..', 'docs', 'errors.md'), 'utf8');
    expect(errorsPage()).toBe(page);
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

  it('breaks no rule that redocly recommends, and its examples are valid', async () => {
    const rules = { 'no-invalid-schema-examples': 'error', 'no-invalid-parameter-examples': 'error' } as const;
    const problems = await lint({ ref: file, config: await createConfig({ extends: ['recommended'], rules }) });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  });

  it('describes the webhooks as they are sent', async () => {
    const { webhooks, components } = JSON.parse(committed) as DocumentJson;
    const receiver = await startReceiver();
    const key = await api.createKey({ sandbox: true });
    const { body: finetune } = await api.request<{ id: string }>('POST', '/v1/finetunes', {
      key,
      body: { name: 'star' },
    });
    // A name that nobody has is not read from, but they are told of nonetheless.
    const image = 'http://pictures.invalid/star.png';
    const body = { prompt: 'a star', webhook: receiver.url, image, mask: image, strength: 0.5 };
    await api.request('POST', '/v1/sd/text-to-image', { key, body });
    const ofGeneration = await receiver.next(1);
    await api.request('POST', `/v1/finetunes/${finetune.id}/prompts`, { key, body: [body] });
    const ofPrompt = await receiver.next(2);
    const training = { name: 'star', images_url: [1, 2, 3, 4].map((n) => `${image}?${n}`), webhook: receiver.url };
    await api.request('POST', '/v1/finetunes', { key, body: training });
    const ofFinetune = await receiver.next(3);
    await receiver.close();
    const sent = { generationTerminated: ofGeneration, promptTerminated: ofPrompt, finetuneTerminated: ofFinetune };
    expect(Object.keys(webhooks).sort()).toEqual(Object.keys(sent).sort());
    for (const [name, { headers, body: text }] of Object.entries(sent)) {
      const { parameters = [], requestBody } = webhooks[name].post;
      expect(parameters.filter((parameter) => parameter.in === 'header' && parameter.required)).toHaveLength(3);
      for (const parameter of parameters)
        expect(headers[parameter.name]).toMatch(new RegExp(parameter.schema.pattern ?? 'no pattern'));
      const { $ref } = requestBody!.content['application/json'].schema;
      const { properties = {} } = components.schemas[$ref.split('/').at(-1) ?? ''];
      const shown = JSON.parse(text) as object;
      // A Prompt has no references beside a mask, and nothing around a picture; its record then has no such field.
      const optional = ['references', 'outpaint'];
      const told = Object.keys(properties).filter((field) => !optional.includes(field) || field in shown);
      expect(Object.keys(shown).sort()).toEqual(told.sort());
    }
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

  describe('has pages that', () => {
    const read = async (path: string) => api.request('GET', path);
    const linksOf = (html: string) => [...html.matchAll(/href="([^"]+)"/g)].map(([, link]) => link);

    it('are all listed at /docs, which needs no key', async () => {
      const { status, text } = await read('/docs');
      expect(status).toBe(200);
      const article = text.slice(text.indexOf('<article>'));
      for (const name of guides) expect(article).toContain(`href="./docs/${name}"`);
      for (const name of referencePages) expect(text).toContain(`href="./docs/${name}"`);
    });

    it('explain each error where its type leads', async () => {
      const { body } = await api.request<ProblemJson>('GET', '/v1/models');
      expect(body.type).toBe('https://pictures.example/docs/errors#Unauthorized');
      for (const code of errorCodes) {
        const [path, anchor] = problemType('', code).split('#');
        expect((await read(path)).text).toContain(`<a id="${anchor}"></a><code>${code}</code>`);
      }
    });

    it.each(names)('have %s, which runs and loads only files of the service', async (name) => {
      const { status, headers, text } = await read(`/docs/${name}`);
      expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
      expect(headers.get('content-security-policy')).not.toMatch(/unsafe|https?:|\*/);
      expect(text).not.toMatch(/<script(?![^>]*src=)|<style|\son\w+=|style=/);
      expect(text).toMatch(/<h1[^>]*>/);
      expect(text.length).toBeLessThan(400_000);
    });

    it('link to pages and headings that exist', async () => {
      const pages = new Map<string, string>();
      for (const name of ['', ...names.map((each) => `/${each}`)])
        pages.set(`/docs${name}`, (await read(`/docs${name}`)).text);
      const dead: string[] = [];
      for (const [path, text] of pages)
        for (const link of linksOf(text)) {
          const { origin, pathname, hash } = new URL(link, `${api.baseUrl}${path}`);
          if (origin !== new URL(api.baseUrl).origin) continue;
          const target = pages.get(pathname) ?? ((await read(pathname)).status === 200 ? '' : undefined);
          if (target === undefined || (hash && !target.includes(`id="${hash.slice(1)}"`)))
            dead.push(`${path}: ${link}`);
        }
      expect(dead).toEqual([]);
    });

    it('follow one another, from the first to the last', async () => {
      const order: string[] = [];
      let path: string | undefined = '/docs';
      let previous: string | undefined;
      while (path !== undefined && !order.includes(path)) {
        const { text } = await read(path);
        const turn = (rel: string): string | undefined => {
          const [, link] = new RegExp(`rel="${rel}" href="([^"]+)"`).exec(text) ?? [];
          return link && new URL(link, `${api.baseUrl}${path}`).pathname;
        };
        expect([path, turn('prev')]).toEqual([path, previous]);
        order.push(path);
        previous = path;
        path = turn('next');
      }
      expect(order.sort()).toEqual(['/docs', ...names.map((name) => `/docs/${name}`)].sort());
    });

    it('show the files of the service that guides point to', async () => {
      for (const [file, kind] of [
        ['docker/proxy/nginx.conf', 'code'],
        ['docker/monitoring/alerts.yaml', 'code'],
        ['CHANGELOG.md', 'h2'],
      ]) {
        const { status, text } = await read(`/docs/files/${file}`);
        expect([file, status]).toEqual([file, 200]);
        expect(text).toMatch(new RegExp(`<${kind}[ >]`));
      }
      const conf = readFileSync(join(__dirname, '..', '..', 'docker', 'proxy', 'nginx.conf'), 'utf8');
      const { text } = await read('/docs/files/docker/proxy/nginx.conf');
      for (const line of conf.split('\n')) expect(text).toContain(line.replaceAll('"', '&quot;'));
      // Beside the files that are meant, an operator's own may lie there.
      expect((await read('/docs/files/docker/proxy')).status).toBe(404);
      expect((await read('/docs/network')).text).toContain('href="../docs/files/docker/proxy/nginx.conf"');
    });

    it('show words in angle brackets, which are no tags', async () => {
      expect((await read('/docs/reference/fine-tunes')).text).toMatch(/&lt;token&gt; &lt;name&gt;/);
    });

    it.each(['/docs/nope', '/docs/reference/nope', '/docs/a/b/c'])(
      'are listed for a browser that asks for %s, which is not there',
      async (path) => {
        const headers = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
        const { status, text, headers: answered } = await api.request('GET', path, { headers });
        expect([status, answered.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
        expect(answered.get('content-security-policy')).toContain("default-src 'none'");
        expect(text).toContain('<h1 id="there-is-no-such-page"');
        const links = [...linksOf(text), ...[...text.matchAll(/ src="([^"]+)"/g)].map(([, link]) => link)];
        const others = links.filter((link) => !link.startsWith('#'));
        const found = new Set(others.map((link) => new URL(link, `${api.baseUrl}${path}`).pathname));
        expect(found.size).toBeGreaterThan(30);
        for (const each of found) expect([each, (await read(each)).status]).toEqual([each, 200]);
      },
    );

    it.each([
      '/docs/nowhere',
      '/docs/..%2findex',
      '/docs/errors.md',
      '/docs/reference/nowhere',
      '/docs/reference/..%2f..%2findex',
    ])('have no %s', async (path) => {
      const { status, body } = await read(path);
      expect([status, body]).toEqual([404, expect.objectContaining({ code: 'RouteNotFound' })]);
    });
  });
});
