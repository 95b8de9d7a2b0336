import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describeInBrowser, TestBrowser } from '../support/browser';
import { trainableModels } from '../support/quick-model';
import { processesOf, ServiceProcess, untilNobodyIsLeft } from '../support/service-process';
import { until } from '../support/until';

interface GenerationJson {
  prompt: string;
  status: string;
  images: string[];
}

/** With so many it takes long enough for something to happen meanwhile. */
const pictures = 4;

jest.setTimeout(600_000);

describeInBrowser('The page of npm start, of which a process is killed while it draws,', () => {
  let folder: string;
  let launcher: ServiceProcess;
  let browser: TestBrowser;
  let page: Page;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-recovery-'));
    chmodSync(folder, 0o711);
    // Content of the pictures does not matter.
    launcher = new ServiceProcess('launcher', {
      DATA_DIR: join(folder, 'data'),
      PORT: '0',
      MODELS_DIR: trainableModels(),
    });
    await launcher.listening();
    const address = await until(
      async () => /http:\S+#code=[\w-]+(?=\n)/.exec(launcher.output)?.[0],
      'the address that signs in is printed',
    );
    browser = await TestBrowser.start(new URL(address).origin);
    page = await (await browser.context()).newPage();
    await page.goto(address);
    await page.locator('.prompt-form').waitFor();
    // It is gone after a reload.
    await page.evaluate('globalThis.isSameDocument = true');
  });
  afterEach(() => expect(browser.problems.splice(0)).toEqual([]));
  afterAll(async () => {
    await browser?.close();
    await launcher.end('SIGKILL');
    await untilNobodyIsLeft(folder);
    rmSync(folder, { recursive: true });
  });

  const begin = async (prompt: string): Promise<void> => {
    await page.getByLabel('Prompt', { exact: true }).fill(prompt);
    await page.getByLabel('Steps', { exact: true }).fill('50');
    await page.getByLabel('Pictures', { exact: true }).fill(String(pictures));
    await page.getByRole('button', { name: 'Draw', exact: true }).click();
    await page
      .locator('.stage')
      .getByText(/^Step [1-3]\d of 50$/)
      .waitFor();
  };
  const kill = (app: string): void => {
    const found = processesOf(folder).filter(({ command }) => command.includes(`apps/${app}/src/main`));
    expect(found).toHaveLength(1);
    process.kill(found[0].pid, 'SIGKILL');
  };
  /** Every picture is there once, in the page and in the service, and nothing else is. */
  const expectDrawn = async (...prompts: string[]): Promise<void> => {
    await page.getByRole('button', { name: `${prompts[0]} (Finished)` }).waitFor();
    const names = prompts.map((prompt) => `${prompt} (Finished)`);
    const tiles = page.locator('.tile-button');
    await until(async () => (await tiles.count()) === names.length, 'each has a tile');
    for (const [index, name] of names.entries()) expect(await tiles.nth(index).getAttribute('aria-label')).toBe(name);
    const list = await page.evaluate<GenerationJson[]>(`fetch('v1/sd/text-to-image', {
      headers: { Authorization: 'Bearer ' + sessionStorage.getItem('darkroom.key') },
    }).then((answer) => answer.json())`);
    expect(list.map(({ prompt, status, images }) => [prompt, status, images.length])).toEqual(
      prompts.map((prompt) => [prompt, 'succeeded', pictures]),
    );
    expect(await page.evaluate('globalThis.isSameDocument')).toBe(true);
  };

  it('says that the service is gone, and goes on by itself', async () => {
    await begin('a red star');
    kill('api');
    const gone = page.getByText('The service does not answer.');
    await gone.waitFor();
    await gone.waitFor({ state: 'detached' });
    await expectDrawn('a red star');
  });

  it('says that the worker is silent, and then that the picture is drawn again', async () => {
    await begin('a green star');
    kill('inference');
    const stage = page.locator('.stage');
    await stage.getByText('Its worker is silent. Waiting for a worker').waitFor();
    await stage.getByText(/^Step \d+ of 50 \(drawn again\)$/).waitFor();
    await expectDrawn('a green star', 'a red star');
  });
});
