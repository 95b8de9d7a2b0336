/* global document, scrollTo */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { root } from './build.mjs';
import { openPage, withService } from './browser.mjs';

/**
 * Makes the pictures of the page that stand in docs/: `node scripts/screenshots.mjs [folder]`. It starts a service of
 * its own, draws what the pictures show, and needs a Chromium, which `CHROMIUM` may name.
 */
const folder = process.argv[2] ?? join(root, 'docs', 'screenshots');
const wide = { width: 1440, height: 900 };
const narrow = { width: 390, height: 844 };
const prompts = [
  'a red circle on a blue background',
  'a yellow star on a purple background',
  'a green triangle on a white background',
  'a pink heart on a striped black background',
  'an orange diamond on a cyan background',
  'a white ring on a red background',
  'a blue square on a dotted yellow background',
];

mkdirSync(folder, { recursive: true });

async function shoot(page, name) {
  // Pictures and fonts are there, and nothing moves any more.
  await page.waitForFunction(() => [...document.images].every((image) => image.complete));
  await page.evaluate(() => Promise.all([...document.images].map((image) => image.decode().catch(() => {}))));
  await page.waitForFunction(() =>
    document
      .getAnimations()
      .every(({ playState, effect }) => playState !== 'running' || effect.getTiming().iterations === Infinity),
  );
  const png = await page.screenshot();
  await sharp(png)
    .webp({ quality: 82, effort: 6 })
    .toFile(join(folder, `${name}.webp`));
  console.log(`${name}.webp`);
}

async function draw(page, prompt, { steps = '25', seed = '6', pictures = '1' } = {}) {
  await page.locator('#prompt').fill(prompt);
  await page.locator('#steps').fill(steps);
  await page.locator('#seed').fill(seed);
  await page.locator('#count').fill(pictures);
  await page.locator('#scheduler').selectOption('dpmpp_2m');
  await page.locator('.prompt-form .is-primary').click();
}

const finished = (page, prompt) =>
  page
    .getByRole('button', { name: `${prompt} (Finished)` })
    .first()
    .waitFor({ timeout: 120_000 });

/** What the pictures show; in the order in which it is made. */
async function fill(page) {
  for (const [index, prompt] of prompts.entries()) {
    await draw(page, prompt, { seed: String(index + 2) });
    await finished(page, prompt);
  }
}

async function ofDrawing(page) {
  await draw(page, 'a red star on a gradient orange background', { steps: '50', seed: '11', pictures: '2' });
  await page.locator('.stage [data-testid=preview]').waitFor();
  await page.locator('.stage .progress-text', { hasText: /^Step [1-6]\d / }).waitFor({ timeout: 60_000 });
  await shoot(page, 'drawing');
  await finished(page, 'a red star on a gradient orange background');
}

async function ofPages(page, theme) {
  await page.evaluate(() => scrollTo(0, 0));
  await shoot(page, `gallery-${theme}`);
  await page.locator('.tile-button').nth(1).click();
  await shoot(page, `picture-${theme}`);
  await page.keyboard.press('Escape');
  await page.goto(`${page.url().split('#')[0]}#/collections`);
  await page.locator('.cover img').first().waitFor();
  await shoot(page, `collections-${theme}`);
  await page.goto(`${page.url().split('#')[0]}#/`);
}

/** The operator's half, while something is drawn; the page is that of a key with the scope `admin`. */
async function ofOperator(page, theme) {
  const prompt = `a glossy ${theme === 'dark' ? 'blue star' : 'purple heart'} on a gradient white background`;
  await draw(page, prompt, { steps: '50', seed: '21', pictures: '4' });
  await page.goto(`${page.url().split('#')[0]}#/operate`);
  await page
    .locator('.device')
    .getByText(/^\d+ pictures?$/)
    .waitFor();
  await shoot(page, `operate-${theme}`);
  await page.goto(`${page.url().split('#')[0]}#/operate/keys`);
  await page.locator('.usage rect').first().waitFor();
  await shoot(page, `keys-${theme}`);
  await page.goto(`${page.url().split('#')[0]}#/`);
  await finished(page, prompt);
}

await withService(async ({ address, browser }) => {
  const page = await openPage(browser, address, { viewport: wide, colorScheme: 'dark' });
  await shoot(page, 'empty');
  await fill(page);
  await ofDrawing(page);
  await ofPages(page, 'dark');
  await ofOperator(page, 'dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await ofPages(page, 'light');
  await ofOperator(page, 'light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.setViewportSize(narrow);
  await page.evaluate(() => scrollTo(0, 0));
  await shoot(page, 'phone');
});
