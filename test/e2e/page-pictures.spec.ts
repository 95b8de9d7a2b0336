import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import type { TestKey } from '../support/api';
import { describeInBrowser, faults, TestBrowser } from '../support/browser';
import { ofSuite } from '../support/of-suite';
import { trainableModels } from '../support/quick-model';
import { startTestService } from '../support/service';

interface GenerationJson {
  id: string;
  prompt: string;
  finetunes: { id: string; scale: number }[];
}

const weights = readFileSync(join(__dirname, '..', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors'));

jest.setTimeout(600_000);

describeInBrowser('The form of the page', () => {
  // What the pictures show does not matter.
  const service = ofSuite(() => startTestService({ env: { MODELS_DIR: trainableModels() } }));
  let browser: TestBrowser;
  let key: TestKey;

  beforeAll(async () => {
    browser = await TestBrowser.start(service.baseUrl);
  });
  beforeEach(async () => {
    key = await service.createKey();
  });
  afterEach(async () => expect(await browser.closePages()).toEqual([]));
  afterAll(async () => {
    await browser.close();
  });

  const list = async () => (await service.request<GenerationJson[]>('GET', '/v1/sd/text-to-image', { key })).body;
  const drawn = async (page: Page, prompt: string): Promise<void> => {
    await page.getByLabel('Prompt', { exact: true }).fill(prompt);
    await page.getByLabel('Steps', { exact: true }).fill('4');
    await page.getByRole('button', { name: 'Draw', exact: true }).click();
    await page.getByRole('button', { name: `${prompt} (Finished)` }).waitFor();
  };

  it('combines Fine-Tunes, each as strongly as its slider says, and brings them back', async () => {
    const [one, other] = await Promise.all(['One', 'Other'].map((title) => newLora(title)));
    const page = await browser.signedIn(key.token);
    const choice = page.getByLabel('Add a Fine-Tune');
    await choice.selectOption('One');
    await choice.selectOption('Other');
    await page.getByLabel('Strength of One').fill('0.7');
    await page.getByLabel('Strength of Other').press('ArrowRight');
    expect(await faults(page)).toEqual([]);
    await drawn(page, 'a red zwx robot');
    const used = [
      { id: one, scale: 0.7 },
      { id: other, scale: 1.05 },
    ];
    expect((await list())[0].finetunes).toEqual(used);
    await page.getByRole('button', { name: 'Take One out' }).click();
    await page.getByRole('button', { name: 'Take Other out' }).click();
    await page.getByRole('button', { name: 'a red zwx robot (Finished)' }).click();
    await page.getByText('One (0.7), Other (1.05)').waitFor();
    await page.getByRole('button', { name: 'Reuse' }).click();
    expect(await page.getByLabel('Strength of One').inputValue()).toBe('0.7');
    await page.getByRole('button', { name: 'Take Other out' }).click();
    await drawn(page, 'a blue zwx robot');
    expect((await list())[0].finetunes).toEqual([used[0]]);
  });

  const newLora = async (title: string): Promise<string> => {
    const body = { name: 'robot', title, model: 'shapes' };
    const { body: made } = await service.request<{ id: string }>('POST', '/v1/finetunes', { key, body });
    const response = await fetch(`${service.baseUrl}/v1/finetunes/${made.id}/weights`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/octet-stream' },
      body: weights,
    });
    expect(response.status).toBe(200);
    return made.id;
  };
});
