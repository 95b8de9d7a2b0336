import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { browserOfSuite, describeInBrowser, dropFile, faults, tooWide, violations } from '../support/browser';
import { trainableModels } from '../support/quick-model';
import { startTestService } from '../support/service';
import { until } from '../support/until';
import { ofSuite, ofTest } from '../support/of-suite';

interface GenerationJson {
  id: string;
  prompt: string;
  status: string;
  seed: number;
  steps: number;
  images: string[];
}

const weights = join(__dirname, '..', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors');
/**
 * Nothing but the picture itself may move when it comes; the same limit as of browsers' own measures for a good page.
 */
const largestShift = 0.02;

jest.setTimeout(600_000);

describeInBrowser('The page in a browser', () => {
  // Content of the pictures does not matter.
  const service = ofSuite(() => startTestService({ env: { MODELS_DIR: trainableModels() } }));
  const browser = browserOfSuite(service);
  const key = ofTest(() => service.createKey());

  const list = async () => (await service.request<GenerationJson[]>('GET', '/v1/sd/text-to-image', { key })).body;
  const draw = async (page: Page, prompt: string, steps = 4): Promise<void> => {
    await page.getByLabel('Prompt', { exact: true }).fill(prompt);
    await page.getByLabel('Steps', { exact: true }).fill(String(steps));
    await page.getByRole('button', { name: 'Draw', exact: true }).click();
  };
  const tile = (page: Page, prompt: string, status = 'Finished') =>
    page.getByRole('button', { name: `${prompt} (${status})` });
  const drawn = async (page: Page, prompt: string, steps?: number): Promise<void> => {
    await draw(page, prompt, steps);
    await tile(page, prompt).waitFor();
  };

  it('has documentation beside it that is searched, without a finding of axe', async () => {
    const page = await browser.signedIn(key.token);
    for (const path of ['/docs', '/docs/limits']) {
      await page.goto(`${service.baseUrl}${path}`);
      expect([await violations(page), await tooWide(page)]).toEqual([[], []]);
    }
    await page.keyboard.press('/');
    await page.keyboard.type('idempot');
    const first = page.locator('.result a').first();
    await first.waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole('link', { name: 'Errors: 409 Conflict' }).click();
    await page.waitForURL(/\/docs\/errors#/);
    await page.keyboard.press('/');
    await page.keyboard.type('compute_seconds');
    await page.getByRole('link', { name: 'Schemas: Schema Metrics' }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/docs\/reference\/schemas#schema-metrics$/);
    await page.getByText('compute_seconds').first().waitFor();
  });

  it('draws what the form says, shows it as it forms, and moves nothing meanwhile', async () => {
    const page = await browser.signedIn(key.token);
    await page.locator('.chip').first().click();
    await page.getByLabel('Steps', { exact: true }).fill('50');
    await page.getByLabel('Seed', { exact: true }).fill('7');
    // Twice as many calls of the U-Net, so that a browser which gets no processor for seconds still sees some of the
    // steps.
    await page.getByLabel('Scheduler', { exact: true }).selectOption('heun');
    // The preview is there only while the picture is drawn, so it is read in the moment in which it is there.
    await page.evaluate(`
      globalThis.shifts = [];
      globalThis.preview = new Promise((resolve) => {
        const observer = new MutationObserver(() => {
          const found = document.querySelector('.stage [data-testid="preview"]');
          if (!found?.src || !/Step \\d+ of 50/.test(document.querySelector('.stage').textContent)) return;
          observer.disconnect();
          new PerformanceObserver((list) => shifts.push(...list.getEntries().map(({ value }) => value))).observe({ type: 'layout-shift' });
          resolve(found.src);
        });
        observer.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
      });
      undefined;
    `);
    await page.keyboard.press('Control+Enter');
    expect(await page.evaluate<string>('preview')).toMatch(/^data:image\/jpeg;base64,/);
    await page.locator('.stage button img').first().waitFor();
    await until(
      () => page.evaluate<boolean>(`document.querySelector('.stage button img').naturalWidth === 512`),
      'the picture is loaded',
    );
    const shown = `document.querySelector('.tile img').src`;
    await until(
      async () => (await page.evaluate<string>(shown)).endsWith('.thumbnail.webp'),
      'the gallery shows a small one',
    );
    const [made] = await list();
    expect(made).toMatchObject({
      prompt: 'a red circle on a blue background',
      seed: 7,
      steps: 50,
      scheduler: 'heun',
      status: 'succeeded',
    });
    const shifts = await page.evaluate<number[]>('shifts');
    expect(shifts.reduce((sum, shift) => sum + shift, 0)).toBeLessThan(largestShift);
  });

  it('cancels, and draws several at once', async () => {
    const page = await browser.signedIn(key.token);
    await page.getByLabel('Pictures', { exact: true }).fill('8');
    await draw(page, 'a long one', 50);
    await page.locator('.stage').getByRole('button', { name: 'Cancel' }).click();
    await tile(page, 'a long one', 'Canceled').waitFor();
    expect((await list())[0].status).toBe('canceled');
    await page.getByLabel('Pictures', { exact: true }).fill('1');
    const prompts = ['a red star', 'a green star', 'a blue star', 'a white star'];
    for (const prompt of prompts) {
      await draw(page, prompt);
      await page.locator('.stage').getByText(prompt).waitFor();
    }
    for (const prompt of prompts) await tile(page, prompt).waitFor();
    expect((await list()).map(({ prompt }) => prompt)).toEqual([...prompts.reverse(), 'a long one']);
    await page.getByLabel('Show').selectOption('canceled');
    await tile(page, 'a red star').waitFor({ state: 'detached' });
    await page.locator('.tile').first().waitFor();
    expect(await page.locator('.tile').count()).toBe(1);
  });

  it('shows a picture in full by the keyboard, and varies, reuses, compares and deletes it', async () => {
    const page = await browser.signedIn(key.token);
    await drawn(page, 'a red square');
    await drawn(page, 'a blue square');
    await tile(page, 'a blue square').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    const viewer = page.getByRole('dialog');
    await viewer.getByRole('heading', { name: 'a red square' }).waitFor();
    await page.keyboard.press('ArrowLeft');
    await viewer.getByRole('heading', { name: 'a blue square' }).waitFor();
    await viewer.getByText('Python').click();
    expect(await viewer.locator('pre').textContent()).toContain('urllib.request');
    await viewer.getByRole('button', { name: 'Zoom in' }).click();
    await viewer.getByText(/^\d+ %$/).waitFor();
    await viewer.getByRole('button', { name: 'Compare' }).click();
    await tile(page, 'a red square').click();
    const differing = page.getByRole('dialog').locator('.differs');
    await differing.first().waitFor();
    expect(await differing.count()).toBeGreaterThanOrEqual(4);
    await page.getByText('One over the other').click();
    const line = page.getByLabel('How much of the first picture is shown');
    await line.fill('20');
    await line.press('ArrowRight');
    const shownPart = `getComputedStyle(document.querySelector('.before-after [alt="a blue square"]')).clipPath`;
    expect(await page.evaluate(shownPart)).toBe('inset(0px 79% 0px 0px)');
    await page.keyboard.press('Escape');

    await tile(page, 'a red square').click();
    await viewer.getByRole('button', { name: 'Reuse' }).click();
    expect(await page.getByLabel('Prompt', { exact: true }).inputValue()).toBe('a red square');
    await tile(page, 'a red square').click();
    await viewer.getByRole('button', { name: 'Vary' }).click();
    await until(async () => (await list()).length === 3, 'it is drawn once more');
    const [varied, , first] = await list();
    expect(varied).toMatchObject({ prompt: first.prompt, steps: first.steps });
    expect(varied.seed).not.toBe(first.seed);
    await tile(page, 'a blue square').click();
    await viewer.getByRole('button', { name: 'Delete' }).click();
    await viewer.getByRole('button', { name: 'Delete' }).click();
    await tile(page, 'a blue square').waitFor({ state: 'detached' });
    expect((await list()).map(({ prompt }) => prompt)).toEqual(['a red square', 'a red square']);
  });

  it('takes one to the form, or to the picture that forms, from a picture far down on a phone, and says so', async () => {
    const phone = { hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 } };
    const page = await browser.signedIn(key.token, await browser.context(phone));
    const body = { prompt: 'a red square', model: 'shapes', steps: 2 };
    await service.request('POST', '/v1/sd/text-to-image', { key, body });
    const viewer = page.getByRole('dialog');
    const from = async (button: string, said: string): Promise<void> => {
      await tile(page, 'a red square').first().click();
      await viewer.getByRole('button', { name: button }).click();
      await viewer.waitFor({ state: 'detached' });
      await page.getByText(said).waitFor();
    };
    const isInView = (selector: string) => () =>
      page.evaluate<boolean>(`(({ top }) => top > -1 && top < innerHeight / 2)(
        document.querySelector('${selector}').getBoundingClientRect())`);
    for (const [button, said] of [
      ['Reuse', 'The settings of the picture are in the form.'],
      ['Draw on', 'The picture is in the form, to draw on from it.'],
    ]) {
      await from(button, said);
      await until(isInView('#prompt'), 'the form is in view');
      expect(await page.evaluate<string>('document.activeElement.id')).toBe('prompt');
    }
    await from('Vary', 'It is drawn again with a new seed.');
    await until(isInView('.stage'), 'the picture that forms is in view');
  });

  it('takes its settings from a picture that is dropped in', async () => {
    const page = await browser.signedIn(key.token);
    await drawn(page, 'a „grünes“ triangle', 3);
    const [{ images, seed }] = await list();
    const png = Buffer.from(await (await fetch(service.baseUrl + new URL(images[0]).pathname)).arrayBuffer());
    await page.reload();
    await page.getByLabel('API key').fill(key.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await dropFile(page, '.stage', 'picture.png', 'image/png', png);
    await page.getByText('The settings of the picture are in the form.').waitFor();
    expect(await page.getByLabel('Prompt', { exact: true }).inputValue()).toBe('a „grünes“ triangle');
    expect(await page.getByLabel('Seed', { exact: true }).inputValue()).toBe(String(seed));
    expect(await page.getByLabel('Steps', { exact: true }).inputValue()).toBe('3');
    await page.getByTestId('png').setInputFiles({ name: 'x.png', mimeType: 'image/png', buffer: png.subarray(0, 30) });
    await page.getByText('This file has no settings of Darkroom in it.').waitFor();
  });

  it('uploads a LoRA, draws with it, makes a Style of the picture, and applies its Collection', async () => {
    const page = await browser.signedIn(key.token);
    await page.getByRole('link', { name: 'Fine-Tunes' }).click();
    await page.getByLabel('Name', { exact: true }).fill('robot');
    await page.getByLabel('Trained on').selectOption('shapes');
    await page.getByRole('button', { name: 'Create' }).click();
    await dropFile(page, '.card .drop', 'x.safetensors', '', Buffer.from('this is no safetensors file'));
    await page
      .locator('.card .drop .problem')
      .getByText(/safetensors/)
      .waitFor();
    await page.getByLabel('Weights for robot').setInputFiles(weights);
    await page.getByText('LoRA, ').waitFor();
    await page.getByLabel('Strength').fill('0.8');
    await page.getByText('The strength was changed.').waitFor();
    await page.getByRole('button', { name: 'Draw with it' }).click();
    await page.getByLabel('Prompt', { exact: true }).fill('a scene');
    // The name is only hinted at: the service decides.
    expect(await page.getByRole('button', { name: 'Draw', exact: true }).isDisabled()).toBe(false);
    await page.getByRole('button', { name: 'Add “robot”' }).click();
    // A Prompt may have several pictures, as a Generation.
    await page.getByLabel('Pictures', { exact: true }).fill('2');
    await page.getByLabel('Scheduler', { exact: true }).selectOption('ddim');
    await drawn(page, 'a scene robot', 2);
    await page.locator('.badge').getByText('2').waitFor();
    await page.locator('.stage img.picture').nth(1).waitFor();

    await tile(page, 'a scene robot').click();
    const viewer = page.getByRole('dialog');
    await viewer.getByRole('button', { name: 'Make a Style' }).click();
    await viewer.getByLabel('Make a Style').fill('Scene');
    await viewer.getByLabel('New Collection').fill('Scenes');
    await viewer.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Added to the Collection.').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Collections' }).click();
    await page.getByRole('heading', { name: 'Public' }).waitFor();
    await until(async () => (await page.locator('section:last-of-type .thumbnail img').count()) >= 4, 'public ones');
    await page.getByRole('link', { name: 'Scenes' }).click();
    await page.getByRole('button', { name: 'Apply all' }).click();
    await page.getByText('One picture is being drawn.').waitFor();
    await until(async () => (await page.locator('.tile.is-succeeded').count()) === 2, 'both pictures are there');
  });

  it('agrees between two tabs, also about what was deleted', async () => {
    const context = await browser.context();
    const [first, second] = [await browser.signedIn(key.token, context), await browser.signedIn(key.token, context)];
    await drawn(first, 'a yellow ring');
    await tile(second, 'a yellow ring').click();
    for (let n = 0; n < 2; n++) await second.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await tile(first, 'a yellow ring').waitFor({ state: 'detached' });
  });

  it.each(['dark', 'light'] as const)(
    'is without a finding of axe on every screen (%s), wide and at 360 pixels',
    async (colorScheme) => {
      const context = await browser.context({ colorScheme, viewport: { width: 1280, height: 800 } });
      const start = await context.newPage();
      await start.setViewportSize({ width: 360, height: 740 });
      await start.goto(service.baseUrl);
      await start.getByLabel('API key').waitFor();
      const look = { onlyColours: colorScheme === 'light' };
      expect(await violations(start, look)).toEqual([]);
      const page = await browser.signedIn(key.token, context);
      const expectSound = async () => expect(await faults(page, look)).toEqual([]);
      await expectSound();
      await drawn(page, 'a red circle');
      await drawn(page, 'a blue circle');
      await expectSound();
      await tile(page, 'a red circle').click();
      await expectSound();
      await page.getByRole('button', { name: 'Compare' }).click();
      await tile(page, 'a blue circle').click();
      await expectSound();
      await page.getByText('One over the other').click();
      await page.getByLabel('How much of the first picture is shown').waitFor();
      await expectSound();
      await page.keyboard.press('Escape');
      await page.getByRole('link', { name: 'Fine-Tunes' }).click();
      await page.getByLabel('Name', { exact: true }).fill('robot');
      await page.getByRole('button', { name: 'Create' }).click();
      await page.getByRole('heading', { name: 'robot' }).waitFor();
      await expectSound();
      await page.getByRole('link', { name: 'Collections' }).click();
      await page.getByRole('link', { name: 'Patterns' }).waitFor();
      await expectSound();
      await page.getByRole('link', { name: 'Patterns' }).click();
      await page.getByRole('button', { name: 'Apply Polka dots' }).waitFor();
      await expectSound();
    },
  );
});
