/* global document, innerHeight, innerWidth, performance */
import { Buffer } from 'node:buffer';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import sharp from 'sharp';
import { root } from './build.mjs';
import { newPage, withService } from './browser.mjs';
import { drawAndTime, openAndTime } from './first-use.mjs';

/**
 * Films what the first user of the page sees: `node scripts/recording.mjs [folder]`. It starts a service of its own,
 * opens the address that this prints, types a prompt and draws, and writes `playground.webp`. It needs a Chromium,
 * which `CHROMIUM` may name.
 */
const folder = process.argv[2] ?? join(root, 'docs', 'screenshots');
const size = { width: 960, height: 720 };
/** A frame that is replaced sooner is not seen. */
const shortestMs = 70;
/** How long the last frame stays before the film begins again. */
const lastMs = 3_000;
const budgetBytes = 1.5 * 1000 * 1000;
const prompt = 'a yellow star on a gradient purple background';

/**
 * Collects a frame whenever the page has changed. @returns how to end, which gives the frames as PNG with their times.
 */
async function film(page) {
  const session = await page.context().newCDPSession(page);
  const frames = [];
  session.on('Page.screencastFrame', ({ data, metadata, sessionId }) => {
    frames.push({ png: Buffer.from(data, 'base64'), at: metadata.timestamp * 1000 });
    session.send('Page.screencastFrameAck', { sessionId }).catch(() => undefined);
  });
  await session.send('Page.startScreencast', { format: 'png', everyNthFrame: 1 });
  return async () => {
    await session.send('Page.stopScreencast');
    return frames;
  };
}

/** A pointer that the film can show: the browser's own is not in its pictures. */
async function showPointer(page) {
  await page.evaluate(() => {
    const pointer = document.createElement('div');
    pointer.ariaHidden = 'true';
    Object.assign(pointer.style, {
      ...{ position: 'fixed', zIndex: '2147483647', pointerEvents: 'none', width: '18px', height: '18px' },
      ...{ left: `${innerWidth / 2}px`, top: `${innerHeight / 2}px`, margin: '-9px', borderRadius: '50%' },
      ...{ background: 'rgb(255 255 255 / 55%)', border: '2px solid rgb(0 0 0 / 60%)' },
    });
    document.body.append(pointer);
    document.addEventListener('mousemove', ({ clientX, clientY }) =>
      Object.assign(pointer.style, { left: `${clientX}px`, top: `${clientY}px` }),
    );
  });
}

/** A hand: it clicks on something in the time that it takes to get there. */
function handOf(page) {
  let at = { x: size.width / 2, y: size.height / 2 };
  return async (target) => {
    const { x, y, width, height } = await target.boundingBox();
    const from = at;
    at = { x: x + width / 2, y: y + height / 2 };
    const steps = 8;
    for (let step = 1; step <= steps; step++) {
      const part = (1 - Math.cos((Math.PI * step) / steps)) / 2;
      await page.mouse.move(from.x + (at.x - from.x) * part, from.y + (at.y - from.y) * part);
      await delay(shortestMs);
    }
    await page.mouse.click(at.x, at.y);
  };
}

async function scrollTo(page, target) {
  const { y } = await target.boundingBox();
  const steps = 8;
  for (let step = 0; step < steps; step++) {
    await page.mouse.wheel(0, (y - 60) / steps);
    await delay(shortestMs);
  }
}

/** What the film shows. @returns when its first picture was there, as a time of the frames. */
async function play(page, address) {
  const { firstContentMs } = await openAndTime(page, address);
  const beginsAt = (await page.evaluate(() => performance.timeOrigin)) + firstContentMs;
  const click = handOf(page);
  await showPointer(page);
  await delay(800);
  await click(page.locator('#prompt'));
  await page.keyboard.type(prompt, { delay: shortestMs });
  await delay(400);
  await drawAndTime(page, click);
  await delay(1_500);
  await click(page.locator('.sheet-actions button'));
  await page.locator('.stage [data-testid=preview]').waitFor({ timeout: 120_000 });
  await page.locator('.stage button img').waitFor({ timeout: 120_000 });
  await delay(1_500);
  await scrollTo(page, page.locator('.gallery'));
  await delay(1_500);
  await click(page.locator('.tile-button').nth(1));
  await page.getByRole('dialog').waitFor();
  await delay(500);
  return beginsAt;
}

/**
 * Leaves out what nobody would see: frames before the page was there, equal ones, and ones that are replaced at once.
 */
async function choose(frames, beginsAt) {
  const chosen = [];
  for (const [index, { png, at }] of frames.entries()) {
    const next = frames[index + 1]?.at ?? Infinity;
    if (next < beginsAt || next - at < shortestMs) continue;
    const pixels = await sharp(png)
      .resize({ ...size, fit: 'fill' })
      .removeAlpha()
      .raw()
      .toBuffer();
    if (!chosen.at(-1)?.pixels.equals(pixels)) chosen.push({ pixels, at: Math.max(at, beginsAt) });
  }
  return chosen;
}

async function write(frames, file) {
  const delays = frames.map(({ at }, index) => Math.round((frames[index + 1]?.at ?? at + lastMs) - at));
  const raw = { ...size, height: size.height * frames.length, channels: 3, pageHeight: size.height };
  await sharp(Buffer.concat(frames.map(({ pixels }) => pixels)), { raw, limitInputPixels: false })
    .webp({ quality: 80, effort: 5, smartSubsample: true, minSize: true, loop: 0, delay: delays })
    .toFile(file);
  const seconds = delays.reduce((sum, ms) => sum + ms, 0) / 1000;
  const { size: bytes } = statSync(file);
  console.log(`${file}: ${frames.length} frames, ${seconds.toFixed(1)} s, ${(bytes / 1000).toFixed(0)} kB`);
  if (bytes > budgetBytes) throw new Error(`The film is heavier than ${budgetBytes / 1000} kB.`);
}

mkdirSync(folder, { recursive: true });
await withService(async ({ address, browser }) => {
  const page = await newPage(browser, { viewport: size, colorScheme: 'dark' });
  const end = await film(page);
  const beginsAt = await play(page, address);
  await write(await choose(await end(), beginsAt), join(folder, 'playground.webp'));
});
