import type { TestApi } from '../support/api';
import { startTestApi } from '../support/api';
import { guides, referencePages } from '../support/docs-pages';

const names = [...guides, ...referencePages];

describe('The pages of the documentation', () => {
  let api: TestApi;

  beforeAll(async () => {
    api = await startTestApi();
  });

  afterAll(() => api.close());

  const read = async (path: string) => api.request('GET', path);
  const linksOf = (html: string) => [...html.matchAll(/href="([^"]+)"/g)].map(([, link]) => link);

  it('are all listed at /docs, which needs no key', async () => {
    const { status, text } = await read('/docs');
    expect(status).toBe(200);
    const article = text.slice(text.indexOf('<article>'));
    for (const name of guides) expect(article).toContain(`href="./docs/${name}"`);
    for (const name of referencePages) expect(text).toContain(`href="./docs/${name}"`);
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
        if (target === undefined || (hash && !target.includes(`id="${hash.slice(1)}"`))) dead.push(`${path}: ${link}`);
      }
    expect(dead).toEqual([]);
  });

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
