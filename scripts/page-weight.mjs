/* global performance */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { root } from './build.mjs';
import { newPage, withService } from './browser.mjs';
import { drawAndTime, openAndTime } from './first-use.mjs';

/**
 * Prints what the page weighs and how fast it is: `node scripts/page-weight.mjs`. It starts a service of its
 * own, and does what its first user does: opens the printed address, and draws. It exits with 1 if the page is
 * heavier than its budget.
 */
const budgetBytes = 120 * 1000;
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
const folder = join(root, 'dist', 'apps', 'web');

/** Prints the weight of each file that the browser has loaded. @returns the bytes of all, compressed. */
async function weigh(page) {
  const loaded = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name));
  const assets = loaded.map((url) => new URL(url).pathname).filter((path) => path.startsWith('/assets/'));
  let total = 0;
  for (const file of ['index.html', ...new Set(assets)]) {
    const bytes = readFileSync(join(folder, file));
    const gzip = gzipSync(bytes, { level: 9 }).length;
    total += gzip;
    const [plain, small, smaller] = [bytes.length, gzip, brotliCompressSync(bytes).length].map((size) =>
      kilobytes(size).padStart(9),
    );
    console.log(`${file.padEnd(32)} ${plain}  gzip ${small}  br ${smaller}`);
  }
  console.log(`${'all, gzip'.padEnd(32)} ${kilobytes(total).padStart(9)}  of ${kilobytes(budgetBytes)}`);
  return total;
}

await withService(async ({ address, browser }) => {
  const page = await newPage(browser, { viewport: { width: 1440, height: 900 } });
  await openAndTime(page, address);
  if ((await weigh(page)) > budgetBytes) process.exitCode = 1;
  await page.locator('.chip').first().click();
  await drawAndTime(page, (button) => button.click());
});
