import type { BrowserContextOptions, Page } from 'playwright-core';
import { startTestApi } from '../support/api';
import { browserOfSuite, describeInBrowser, faultsAt, tooWide, violations } from '../support/browser';
import { guides, referencePages } from '../support/docs-pages';
import { ofSuite } from '../support/of-suite';

const phone = { viewport: { width: 390, height: 844 } };
const dark = 'rgb(12, 10, 9)';
const light = 'rgb(244, 240, 232)';

jest.setTimeout(600_000);

describeInBrowser('The documentation in a browser', () => {
  const api = ofSuite(() => startTestApi());
  const browser = browserOfSuite(api);

  const open = async (path: string, options?: BrowserContextOptions): Promise<Page> => {
    const page = await (await browser.context(options)).newPage();
    await page.goto(`${api.baseUrl}${path}`);
    return page;
  };
  const ground = (page: Page): Promise<string> => page.evaluate('getComputedStyle(document.body).backgroundColor');
  const box = async (page: Page, selector: string) => (await page.locator(selector).boundingBox())!;

  it.each([
    ['webhook', 'webhooks'],
    ['train', 'train'],
    ['kubernetes', 'kubernetes'],
    ['backup', 'backup'],
    ['errors', 'errors'],
    ['upgrade', 'upgrade'],
    ['fine-tune', 'finetunes-collections-styles'],
    ['gpu', 'gpu-host'],
  ])('finds the guide first for "%s"', async (words, name) => {
    const page = await open('/docs/limits');
    await page.keyboard.press('/');
    await page.keyboard.type(words);
    await page.getByRole('heading', { name: `found for “${words}”` }).waitFor();
    const first = await page.locator('.result a').first().getAttribute('href');
    expect(new URL(first!, page.url()).pathname).toBe(`/docs/${name}`);
  });

  it.each([
    ['readiness', 'monitoring'],
    ['darkroom_queue_depth', 'monitoring'],
    ['kubernetes backup', 'backup'],
    ['delete pictures automatically', 'running'],
  ])('finds a part of a guide for "%s"', async (words, name) => {
    const page = await open(`/docs/limits?${new URLSearchParams({ q: words }).toString()}`);
    await page.getByRole('heading', { name: `found for “${words}”` }).waitFor();
    expect(await page.locator(`.result a[href*="docs/${name}"]`).count()).toBeGreaterThan(0);
  });

  it('leads from what is found to a part of the page, and back to what was found', async () => {
    const page = await open('/docs/limits');
    const found = page.getByRole('heading', { name: 'found for “webhook”' });
    await page.keyboard.press('/');
    await page.keyboard.type('webhook');
    await found.waitFor();
    await page.locator('.result a').first().click();
    await page.waitForURL(/\/docs\/webhooks/);
    await page.goBack();
    await found.waitFor();
    expect(await page.locator('article').isVisible()).toBe(false);
    await page.getByRole('navigation', { name: 'On this page' }).getByRole('link').last().click();
    expect(await page.locator('article :target').isVisible()).toBe(true);
    await page.goBack();
    await found.waitFor();
    await page.keyboard.press('Escape');
    await page.locator('article .heading').first().click();
    await page.waitForURL(/\/docs\/limits#\w/);
  });

  it.each([
    ['the clipboard', ''],
    ['none, as without HTTPS', `Object.defineProperty(Navigator.prototype, 'clipboard', { value: undefined });`],
  ])('copies a sample as it is written, with %s', async (_name, script) => {
    const context = await browser.context({ permissions: ['clipboard-read', 'clipboard-write'] });
    const page = await context.newPage();
    await page.addInitScript(script);
    await page.goto(`${api.baseUrl}/docs/webhooks`);
    const sample = page.locator('.sample').first();
    await sample.getByRole('button', { name: 'Copy' }).click();
    await sample.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await sample.locator('[class^="hljs"]').count()).toBeGreaterThan(0);
    // A search field takes no line breaks.
    await page.evaluate(`document.body.append(Object.assign(document.createElement('textarea'), { id: 'paste' }))`);
    await page.locator('#paste').focus();
    await page.keyboard.press('Control+V');
    const text = await sample.locator('pre').textContent();
    expect(await page.locator('#paste').inputValue()).toBe(text!.trimEnd());
    expect(text).toContain('\n');
  });

  it('keeps the colours that were chosen, here and in the playground, from the first moment', async () => {
    const page = await open('/docs/limits', { colorScheme: 'dark' });
    expect(await ground(page)).toBe(dark);
    await page.getByLabel('Colours').selectOption('light');
    expect(await ground(page)).toBe(light);
    expect(await violations(page, { onlyColours: true })).toEqual([]);
    // Without the scripts that come later.
    await page.route(/\/assets\/(?!head-).*\.js$/, (route) => route.abort());
    for (const path of ['/docs/limits', '/docs/reference', '/']) {
      await page.goto(`${api.baseUrl}${path}`);
      expect([path, await ground(page)]).toEqual([path, light]);
    }
    await page.unroute(/\/assets\/(?!head-).*\.js$/);
    const key = await api.createKey();
    await page.goto(api.baseUrl);
    await page.getByLabel('API key').fill(key.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    expect(await page.getByLabel('Colours').inputValue()).toBe('light');
    await page.getByLabel('Colours').selectOption('auto');
    expect(await ground(page)).toBe(dark);
    await page.goto(`${api.baseUrl}/docs`);
    expect([await ground(page), await page.getByLabel('Colours').inputValue()]).toEqual([dark, 'auto']);
  });

  it('has the pages and the outline at hand on a phone, and beside the text on a wide screen', async () => {
    const page = await open('/docs/webhooks', phone);
    const outline = page.getByRole('navigation', { name: 'On this page' });
    const contents = page.getByRole('navigation', { name: 'Documentation' });
    expect((await box(page, 'article')).y).toBeLessThan(300);
    for (const [name, opened] of [
      ['All pages', contents],
      ['On this page', outline],
    ] as const) {
      expect(await opened.isVisible()).toBe(false);
      await page.getByRole('button', { name }).click();
      await opened.waitFor();
      expect([name, await violations(page), await tooWide(page)]).toEqual([name, [], []]);
      await page.keyboard.press('Escape');
    }
    await page.getByRole('button', { name: 'On this page' }).click();
    await outline.getByRole('link', { name: 'The signature' }).click();
    await page.waitForURL(/#the-signature$/);
    expect(await outline.isVisible()).toBe(false);

    await page.setViewportSize({ width: 1280, height: 800 });
    const [left, middle, right] = [
      await contents.boundingBox(),
      await box(page, 'article'),
      await outline.boundingBox(),
    ];
    expect(left!.x + left!.width).toBeLessThan(middle.x);
    expect(middle.x + middle.width).toBeLessThan(right!.x);
  });

  it('has no row of a table on a phone that is taller than the screen, and no endless table', async () => {
    const page = await open('/docs', phone);
    for (const name of [...guides, ...referencePages, 'files/docker/monitoring/alerts.yaml', 'files/CHANGELOG.md']) {
      await page.goto(`${api.baseUrl}/docs/${name}`);
      const heights = await page.evaluate<[number, number][]>(
        `[...document.querySelectorAll('table')].map((table) => [table, ...table.rows].map((each) => each.offsetHeight)).map(([all, ...rows]) => [all, Math.max(...rows)])`,
      );
      const endless = heights.filter(([table, row]) => table > 8000 || row > phone.viewport.height);
      expect([name, endless, await tooWide(page)]).toEqual([name, [], []]);
    }
  });

  it.each(['dark', 'light'] as const)('has no fault in %s colours where there is no page', async (colorScheme) => {
    const page = await open('/docs/reference/nope', { colorScheme });
    expect(await ground(page)).toBe(colorScheme === 'dark' ? dark : light);
    for (const width of [360, 1280]) expect(await faultsAt(page, width)).toEqual([]);
    await page.keyboard.press('/');
    await page.keyboard.type('webhook');
    await page.locator('.result a').first().click();
    await page.waitForURL(/\/docs\/webhooks/);
  });
});
