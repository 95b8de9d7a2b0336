import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { insertKey, type TestKey } from '../support/api';
import { browserOfSuite, describeInBrowser, tooWide, violations } from '../support/browser';
import { ofSuite } from '../support/of-suite';
import { trainableModels } from '../support/quick-model';
import { startTestService } from '../support/service';
import { robotPictures } from '../support/trainings';
import { until } from '../support/until';

const phone: BrowserContextOptions = { hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 } };
const [photo] = robotPictures().map((buffer) => ({ name: 'robot.png', mimeType: 'image/png', buffer }));
const weights = join(__dirname, '..', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors');
/** Of all scripts before anything is tapped: as sent, compressed. */
const mostSentBytes = 120_000;

/** What a thumb would miss: lower or narrower than 44 pixels, or text in two lines. Links within a text are exempt. */
const hardToTap = `(() => {
  const shown = document.querySelector('dialog[open]') ?? document.body;
  const targets = shown.querySelectorAll('nav a, .button, .icon-button, .chip, select, summary, textarea, .segments span, label.check, input:not([type=checkbox], [type=radio], [type=file])');
  return [...targets].flatMap((target) => {
    const { width, height } = target.getBoundingClientRect();
    if (width === 0) return [];
    const name = target.tagName + ' ' + target.className + ' ' + (target.getAttribute('aria-label') ?? target.textContent.slice(0, 30));
    const isSmall = width < 44 || height < 44;
    const isTwoLines = target.matches('nav a, .button, .chip, .segments span') && height > 60;
    return isSmall || isTwoLines ? [name + ': ' + width + ' x ' + height] : [];
  });
})()`;

jest.setTimeout(600_000);

describeInBrowser('The page on a phone', () => {
  const service = ofSuite(() => startTestService({ env: { MODELS_DIR: trainableModels() } }));
  const browser = browserOfSuite(service);
  let admin: TestKey;

  beforeAll(async () => {
    admin = await insertKey(service.dataSource, { name: 'operator', scopes: ['write', 'admin'] });
  });

  const expectSound = async (page: Page): Promise<void> => {
    const found = [await tooWide(page), await page.evaluate<string[]>(hardToTap), await violations(page)];
    expect(found).toEqual([[], [], []]);
  };
  const drawn = async (page: Page, prompt: string): Promise<void> => {
    await page.getByLabel('Prompt', { exact: true }).fill(prompt);
    await page.getByRole('button', { name: 'Draw', exact: true }).tap();
    await page.getByRole('button', { name: `${prompt} (Finished)` }).waitFor();
  };
  /** Puts a finger down, moves it and lifts it, as the browser hears it from a screen. */
  const swipe = async (page: Page, from: [number, number], to: [number, number]): Promise<void> => {
    const screen = await page.context().newCDPSession(page);
    const send = (type: 'touchStart' | 'touchMove' | 'touchEnd', points: [number, number][]) =>
      screen.send('Input.dispatchTouchEvent', { type, touchPoints: points.map(([x, y]) => ({ x, y })) });
    await send('touchStart', [from]);
    await send('touchMove', [[(from[0] + to[0]) / 2, (from[1] + to[1]) / 2]]);
    await send('touchMove', [to]);
    await send('touchEnd', []);
  };

  it.each(['dark', 'light'] as const)(
    'draws, repaints, draws around, looks at pictures and compares (%s)',
    async (colorScheme) => {
      const page = await browser.signedIn(admin.token, await browser.context({ ...phone, colorScheme }));
      await page.getByText('Settings', { exact: true }).first().tap();
      await page.getByText('Own size').tap();
      await page.getByLabel('Width').waitFor();
      await expectSound(page);
      await page.getByText('Square', { exact: true }).tap();
      await page.getByLabel('Steps', { exact: true }).fill('2');
      await drawn(page, `a red circle in the ${colorScheme}`);
      await drawn(page, `a blue circle in the ${colorScheme}`);
      await expectSound(page);

      await page.getByLabel('Picture to start from').setInputFiles(photo);
      await page.getByRole('button', { name: 'Repaint a part' }).tap();
      const mask = page.locator('.mask-canvas');
      await mask.waitFor();
      const { x, y, width, height } = (await mask.boundingBox())!;
      await swipe(page, [x + width / 4, y + height / 4], [x + width / 2, y + height / 2]);
      await page.getByLabel('What is repainted').waitFor();
      await expectSound(page);
      await page.getByRole('button', { name: 'Done' }).tap();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await expectSound(page);

      await page.getByRole('button', { name: 'Draw around it' }).tap();
      const edge = page.locator('.outpaint-edge.is-right');
      await edge.scrollIntoViewIfNeeded();
      const beyond = () => page.getByLabel('Beyond the right').inputValue();
      const before = Number(await beyond());
      const box = (await edge.boundingBox())!;
      const middle: [number, number] = [box.x + box.width / 2, box.y + box.height / 2];
      await swipe(page, middle, [middle[0] - 30, middle[1]]);
      expect(Number(await beyond())).toBeLessThan(before);
      await expectSound(page);
      await page.getByRole('button', { name: 'Start from no picture' }).tap();

      await page.locator('.tile-button').first().tap();
      await page.getByRole('button', { name: 'Compare' }).waitFor();
      await expectSound(page);
      await page.getByRole('button', { name: 'Compare' }).tap();
      await page.locator('.tile-button').nth(1).tap();
      await page.getByText('One over the other').tap();
      await expectSound(page);
      await page.getByRole('button', { name: 'Close' }).tap();
    },
  );

  it.each(['dark', 'light'] as const)(
    'shows Fine-Tunes, Collections, and all that an operator sees (%s)',
    async (colorScheme) => {
      const page = await browser.signedIn(admin.token, await browser.context({ ...phone, colorScheme }));
      await page.getByRole('link', { name: 'Fine-Tunes' }).tap();
      await page.getByLabel('Name', { exact: true }).fill(`robot-${colorScheme}`);
      await page.getByRole('button', { name: 'Create' }).tap();
      await page.getByLabel(`Weights for robot-${colorScheme}`).setInputFiles(weights);
      await page.getByLabel('Photos to train from').setInputFiles(photo);
      await page.getByText('LoRA, ').first().waitFor();
      await expectSound(page);
      await page.getByRole('link', { name: 'Collections' }).tap();
      await page.getByRole('link', { name: 'Patterns' }).tap();
      await page.getByRole('button', { name: 'Apply Polka dots' }).waitFor();
      await expectSound(page);
      await page.getByRole('link', { name: 'Operate' }).tap();
      for (const part of ['Usage', 'Deliveries', 'Keys', 'Models', 'Storage', 'Failures', 'Live']) {
        await page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name: part, exact: true }).tap();
        await page.locator('.parts [aria-current]', { hasText: part }).waitFor();
        await page.locator('.operator section h2').first().waitFor();
        await expectSound(page);
      }
      for (const path of ['/docs', '/docs/limits', '/docs/reference']) {
        await page.goto(`${service.baseUrl}${path}`);
        expect([await tooWide(page), await violations(page)]).toEqual([[], []]);
      }
    },
  );

  it('has the colours that its switch says, at once at the next visit, and in the documentation', async () => {
    const context = await browser.context({ ...phone, colorScheme: 'dark' });
    const page = await browser.signedIn(admin.token, context);
    const ground = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    const bar = () =>
      page.evaluate<string>(`document.querySelector('meta[name="theme-color"][media="all"]')?.content ?? ''`);
    const light = 'rgb(244, 240, 232)';
    expect(await ground()).not.toBe(light);
    await page.getByLabel('Colours').selectOption('light');
    expect([await ground(), await bar()]).toEqual([light, '#f4f0e8']);
    // Before any of its modules ran.
    await page.route(/\/(?:index|docs|theme)-[^/]*\.js$/, (route) => route.abort());
    for (const path of ['/', '/docs']) {
      await page.goto(`${service.baseUrl}${path}`);
      await until(async () => (await ground()) === light, `${path} is light`);
    }
    await page.unroute(/\/(?:index|docs|theme)-[^/]*\.js$/);
    await page.goto(`${service.baseUrl}/docs`);
    await page.getByLabel('Colours').selectOption('auto');
    expect(await ground()).not.toBe(light);
  });

  it('loads less than 120 kB of script, as sent, before anything is tapped', async () => {
    const page = await (await browser.context(phone)).newPage();
    await page.goto(service.baseUrl);
    await page.getByLabel('API key').waitFor();
    const sent = await page.evaluate<number>(`(() => {
      const scripts = performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js'));
      return scripts.reduce((bytes, { encodedBodySize }) => bytes + encodedBodySize, 0);
    })()`);
    expect(sent).toBeGreaterThan(10_000);
    expect(sent).toBeLessThan(mostSentBytes);
  });
});
