/* global performance */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { root } from './build.mjs';
import { openPage, withService } from './browser.mjs';

/**
 * Prints what the page weighs and how fast it is: `node scripts/page-weight.mjs`. It starts a service of its own, and does what its first
 * user does: opens the printed address, and draws. It exits with 1 if the page is heavier than its budget.
 */
const budgetBytes = 120 * 1000;
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;

function weigh() {
  const folder = join(root, 'dist', 'apps', 'web');
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== '.stamp')
    .map(({ parentPath, name }) => ({ name, bytes: readFileSync(join(parentPath, name)) }));
  const rows = files.map(({ name, bytes }) => ({
    file: name,
    plain: bytes.length,
    gzip: gzipSync(bytes, { level: 9 }).length,
    br: brotliCompressSync(bytes).length,
  }));
  for (const { file, plain, gzip, br } of rows)
    console.log(
      `${file.padEnd(24)} ${kilobytes(plain).padStart(9)}  gzip ${kilobytes(gzip).padStart(8)}  br ${kilobytes(br).padStart(8)}`,
    );
  const total = rows.reduce((sum, { gzip }) => sum + gzip, 0);
  console.log(`${'all, gzip'.padEnd(24)} ${kilobytes(total).padStart(9)}  of ${kilobytes(budgetBytes)}`);
  return total;
}

/** Milliseconds from the navigation to the first content, to the form, to the first preview and to the picture after Draw. */
async function time({ address, browser }) {
  const page = await openPage(browser, address, { viewport: { width: 1440, height: 900 } });
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
  const form = await page.evaluate(() => performance.now());
  console.log(
    `first content ${Math.round(paint)} ms, form with the user signed in ${Math.round(form)} ms after the navigation`,
  );
  await page.locator('.chip').first().click();
  await page.locator('.prompt-form .is-primary').click();
  const sentAt = performance.now();
  const since = () => `${((performance.now() - sentAt) / 1000).toFixed(1)} s`;
  await page.locator('.stage [data-testid=preview]').waitFor({ timeout: 120_000 });
  console.log(`first preview ${since()} after Draw`);
  await page.locator('.stage button img').waitFor({ timeout: 120_000 });
  console.log(`picture ${since()} after Draw, with the model's own steps`);
}

await withService(async (service) => {
  if (weigh() > budgetBytes) process.exitCode = 1;
  await time(service);
});
