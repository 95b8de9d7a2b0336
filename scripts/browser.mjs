import { spawn } from 'node:child_process';
import { accessSync, chmodSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildIfNeeded, root } from './build.mjs';

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** The Chromium of this machine: `CHROMIUM`, or the first in `PATH`. @throws Error if there is none. */
function chromiumFile() {
  const files = (process.env.PATH ?? '').split(':').flatMap((folder) => names.map((name) => join(folder, name)));
  const found = [process.env.CHROMIUM, ...files].find((file) => {
    try {
      accessSync(file ?? '', constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (!found) throw new Error('No Chromium was found: install one, or name its file in CHROMIUM.');
  return found;
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}

/** Starts `npm start` on data of its own. @returns the printed address that signs in, and how to end it. */
async function startService() {
  await buildIfNeeded();
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-browser-'));
  // If this runs as root, PostgreSQL's unprivileged user must be able to enter.
  chmodSync(folder, 0o711);
  const [port, healthPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, [join(root, 'dist/apps/launcher/src/main.js')], {
    cwd: root,
    env: {
      ...process.env,
      DATA_DIR: join(folder, 'data'),
      PORT: String(port),
      INFERENCE_HEALTH_PORT: String(healthPort),
    },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const ended = once(child, 'close');
  const address = await new Promise((resolve, reject) => {
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
      const [found] = /http:\S+#code=\S+\n/.exec(output) ?? [];
      if (found) resolve(found.trim());
    });
    void ended.then(() => reject(new Error(`The service ended before it was ready:\n${output}`)));
  });
  return {
    address,
    async end() {
      child.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Runs something with a service and a browser, and ends both afterwards. */
export async function withService(run) {
  const executablePath = chromiumFile();
  const { chromium } = await import('playwright-core');
  const service = await startService();
  try {
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
    await run({ address: service.address, browser });
    await browser.close();
  } finally {
    await service.end();
  }
}

/** A page on which nothing moves by itself. */
export async function newPage(browser, options) {
  return (await browser.newContext({ reducedMotion: 'reduce', ...options })).newPage();
}

/** Opens an address that signs in. */
export async function openPage(browser, address, options) {
  const page = await newPage(browser, options);
  await page.goto(address);
  await page.locator('.prompt-form').waitFor({ timeout: 60_000 });
  return page;
}
