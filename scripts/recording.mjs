import { Buffer } from 'node:buffer';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import sharp from 'sharp';

/**
 * Films the first picture of README.md: `node scripts/recording.mjs <address> [file]` opens the address that `npm
 * start` prints, types a prompt and draws. The service should have an empty DATA_DIR; CHROMIUM names the browser.
 */
const [address, file = join(dirname(import.meta.dirname), 'docs', 'screenshots', 'playground.webp')] =
  process.argv.slice(2);
const size = { width: 960, height: 720 };
/** A frame that is replaced sooner is not seen. */
const shortestMs = 70;
/** How long the last frame stays before the film repeats. */
const lastMs = 3_000;
const prompt = 'a yellow star on a gradient purple background';

async function play(page) {
  const isDrawn = async () => {
    await page.locator('.stage [data-testid=preview]').waitFor({ timeout: 120_000 });
    await page.locator('.stage button img').waitFor({ timeout: 120_000 });
    await delay(1_500);
  };
  await page.locator('#prompt').click();
  await page.keyboard.type(prompt, { delay: shortestMs });
  await page.locator('.prompt-form .is-primary').click();
  await isDrawn();
  await page.locator('.sheet-actions button').first().click();
  await isDrawn();
  await page.locator('.gallery').scrollIntoViewIfNeeded();
  await page.locator('.tile-button').nth(1).click();
  await page.getByRole('dialog').waitFor();
  await delay(500);
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium' });
const page = await browser.newPage({ viewport: size, colorScheme: 'dark', reducedMotion: 'reduce' });
await page.goto(address);
await page.locator('.prompt-form').waitFor({ timeout: 60_000 });

const filmed = [];
const session = await page.context().newCDPSession(page);
session.on('Page.screencastFrame', ({ data, metadata, sessionId }) => {
  filmed.push({ png: Buffer.from(data, 'base64'), at: metadata.timestamp * 1000 });
  session.send('Page.screencastFrameAck', { sessionId }).catch(() => undefined);
});
await session.send('Page.startScreencast', { format: 'png' });
await play(page);
await session.send('Page.stopScreencast');
await browser.close();

// Chromium may send a frame after a later one.
filmed.sort((a, b) => a.at - b.at);
const frames = [];
for (const [index, { png, at }] of filmed.entries()) {
  if (filmed[index + 1]?.at - at < shortestMs) continue;
  const resized = sharp(png).resize({ ...size, fit: 'fill' });
  const pixels = await resized.removeAlpha().raw().toBuffer();
  if (!frames.at(-1)?.pixels.equals(pixels)) frames.push({ pixels, at });
}
const delays = frames.map(({ at }, index) => Math.round((frames[index + 1]?.at ?? at + lastMs) - at));
const raw = { ...size, height: size.height * frames.length, channels: 3, pageHeight: size.height };
await sharp(Buffer.concat(frames.map(({ pixels }) => pixels)), { raw, limitInputPixels: false })
  .webp({ quality: 80, effort: 5, smartSubsample: true, minSize: true, loop: 0, delay: delays })
  .toFile(file);
console.log(`${file}: ${frames.length} frames`);
