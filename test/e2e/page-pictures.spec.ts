import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import sharp from 'sharp';
import { browserOfSuite, describeInBrowser, dropFile, faults, tooWide } from '../support/browser';
import { ofSuite, ofTest } from '../support/of-suite';
import { startTestService } from '../support/service';
import { until } from '../support/until';

interface GenerationJson {
  id: string;
  prompt: string;
  aspect_ratio: string;
  images: string[];
  image: string | null;
  strength: number | null;
  mask: string | null;
  finetunes: { id: string; scale: number }[];
}

const weights = readFileSync(join(__dirname, '..', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors'));

jest.setTimeout(600_000);

describeInBrowser('The form of the page', () => {
  const service = ofSuite(() => startTestService({ env: { PUBLIC_URL: 'https://pictures.example' } }));
  const browser = browserOfSuite(service);
  const key = ofTest(() => service.createKey());

  const list = async () => (await service.request<GenerationJson[]>('GET', '/v1/sd/text-to-image', { key })).body;
  const sent = async (page: Page, prompt: string): Promise<GenerationJson> => {
    await page.getByLabel('Prompt', { exact: true }).fill(prompt);
    await page.getByRole('button', { name: 'Draw', exact: true }).click();
    await until(async () => (await list())[0]?.prompt === prompt, 'it is asked for');
    return (await list())[0];
  };
  const drawn = async (page: Page, prompt: string): Promise<GenerationJson> => {
    await page.getByLabel('Steps', { exact: true }).fill('2');
    const made = await sent(page, prompt);
    await page.getByRole('button', { name: `${prompt} (Finished)` }).waitFor();
    return made;
  };
  const photo = (width: number, height: number): Promise<Buffer> =>
    sharp({ create: { width, height, channels: 3, background: '#c66' } })
      .png()
      .toBuffer();
  const startWithPhoto = async (page: Page): Promise<void> => {
    const file = { name: 'photo.png', mimeType: 'image/png', buffer: await photo(400, 400) };
    await page.getByLabel('Picture to start from').setInputFiles(file);
    await page.getByAltText('Picture to start from').waitFor();
  };
  const pixelsOf = async (url: string) => {
    const file = await (await fetch(service.baseUrl + new URL(url).pathname)).arrayBuffer();
    return sharp(Buffer.from(file)).greyscale().raw().toBuffer({ resolveWithObject: true });
  };
  /** The mask that a Generation was sent with; `at` takes parts of its width and height. */
  const maskOf = async ({ mask }: GenerationJson) => {
    const { data, info } = await pixelsOf(mask!);
    const at = (x: number, y: number): number =>
      data[(Math.floor(y * info.height) * info.width + Math.floor(x * info.width)) * info.channels];
    return { at, values: data };
  };
  /** How much of the picture's width is used. */
  const cropWidth = (page: Page): Promise<number> =>
    page.evaluate<number>(
      `document.querySelector('.crop').getBoundingClientRect().width / document.querySelector('.crop-view img').getBoundingClientRect().width`,
    );

  it('combines Fine-Tunes, each as strongly as its slider says, and brings them back', async () => {
    const [one, other] = await Promise.all(['One', 'Other'].map((title) => newLora(title)));
    const page = await browser.signedIn(key.token);
    const choice = page.getByLabel('Add a Fine-Tune');
    await choice.selectOption('One');
    await choice.selectOption('Other');
    await page.getByLabel('Strength of One').fill('0.7');
    await page.getByLabel('Strength of Other').press('ArrowRight');
    expect(await faults(page)).toEqual([]);
    const made = await drawn(page, 'a red zwx robot');
    const used = [
      { id: one, scale: 0.7 },
      { id: other, scale: 1.05 },
    ];
    expect(made.finetunes).toEqual(used);
    await page.getByRole('button', { name: 'Take One out' }).click();
    await page.getByRole('button', { name: 'Take Other out' }).click();
    await page.getByRole('button', { name: 'a red zwx robot (Finished)' }).click();
    await page.getByText('One (0.7), Other (1.05)').waitFor();
    await page.getByRole('button', { name: 'Reuse' }).click();
    expect(await page.getByLabel('Strength of One').inputValue()).toBe('0.7');
    await page.getByRole('button', { name: 'Take Other out' }).click();
    expect((await sent(page, 'a blue zwx robot')).finetunes).toEqual([used[0]]);
  });

  it('starts from a picture that is dropped on the form, and shows what is cut away of it', async () => {
    const page = await browser.signedIn(key.token);
    await dropFile(page, '#prompt', 'photo.png', 'image/png', await photo(600, 300));
    await page.getByAltText('Picture to start from').waitFor();
    // Its own shape.
    expect(await page.getByRole('radio', { name: 'Own size' }).isChecked()).toBe(true);
    expect([await page.getByLabel('Width').inputValue(), await cropWidth(page)]).toEqual(['736', 1]);
    await page.getByText('Square', { exact: true }).click();
    expect(await cropWidth(page)).toBeCloseTo(0.5, 2);
    expect(await faults(page)).toEqual([]);
    await page.getByLabel('Strength', { exact: true }).fill('0.5');
    const made = await drawn(page, 'a green circle');
    expect(made).toMatchObject({ strength: 0.5, mask: null, aspect_ratio: 'square' });
    expect((await pixelsOf(made.image!)).info).toMatchObject({ width: 600, height: 300 });

    await page.getByRole('button', { name: 'Start from no picture' }).click();
    await page.getByRole('button', { name: 'a green circle (Finished)' }).click();
    const viewer = page.getByRole('dialog');
    await viewer.getByRole('button', { name: 'Before and after' }).click();
    await viewer.getByAltText('The picture that it started from').waitFor();
    await viewer.getByLabel('How much of the first picture is shown').fill('30');
    expect(await faults(page)).toEqual([]);
    await viewer.getByRole('button', { name: 'Reuse' }).click();
    await page.getByAltText('Picture to start from').waitFor();
    expect(await page.getByLabel('Strength', { exact: true }).inputValue()).toBe('0.5');
  });

  it('draws a shape that is chosen, and a size that is written, as the nearest that the model draws', async () => {
    const page = await browser.signedIn(key.token);
    await page.getByText('16:9', { exact: true }).click();
    await page.getByText('672 x 384 pixels').waitFor();
    expect(await sent(page, 'a wide star')).toMatchObject({ aspect_ratio: '16:9', width: 672, height: 384 });
    await page.getByText('Own size', { exact: true }).click();
    await page.getByLabel('Width').fill('300');
    await page.getByLabel('Height').fill('500');
    await page.getByLabel('Width').focus();
    expect(await faults(page)).toEqual([]);
    expect(await sent(page, 'a high star')).toMatchObject({ aspect_ratio: null, width: 288, height: 512 });
  });

  it('draws around a picture, in a frame whose edges are dragged', async () => {
    const page = await browser.signedIn(key.token);
    await dropFile(page, '#prompt', 'photo.png', 'image/png', await photo(256, 256));
    await page.getByRole('button', { name: 'Draw around it' }).click();
    await page.getByText('384 x 256 pixels').waitFor();
    await page.getByLabel('Beyond the top').fill('128');
    await page.getByText('384 x 384 pixels').waitFor();
    const edge = (await page.locator('.outpaint-edge.is-right').boundingBox())!;
    const frame = (await page.locator('.outpaint').boundingBox())!;
    await page.mouse.move(edge.x + edge.width / 2, edge.y + edge.height / 2);
    await page.mouse.down();
    await page.mouse.move(edge.x + edge.width / 2 + frame.width / 6, edge.y + edge.height / 2);
    await page.mouse.up();
    await page.getByText('448 x 384 pixels').waitFor();
    expect(await faults(page)).toEqual([]);
    expect(await sent(page, 'a wide scene')).toMatchObject({
      ...{ outpaint: { x: 64, y: 128 }, strength: 1, mask: null },
      ...{ aspect_ratio: null, width: 448, height: 384 },
    });
  });

  it('takes a picture from the clipboard, and says what is wrong with a file that is none', async () => {
    const page = await browser.signedIn(key.token);
    await dropFile(page, '#prompt', 'photo.png', 'image/png', Buffer.from('this is no picture'));
    await page.locator('.drop .problem').getByText(/PNG/).waitFor();
    expect(await faults(page)).toEqual([]);
    const base64 = (await photo(64, 96)).toString('base64');
    await page.evaluate(`(() => {
      const bytes = Uint8Array.from(atob('${base64}'), (character) => character.charCodeAt(0));
      const clipboardData = new DataTransfer();
      clipboardData.items.add(new File([bytes], 'image.png', { type: 'image/png' }));
      document.querySelector('#prompt').dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
    })()`);
    await page.getByAltText('Picture to start from').waitFor();
    expect(await page.getByLabel('Height').inputValue()).toBe('640');
  });

  it('repaints what is painted with the brush, and keeps what the eraser took back or was undone', async () => {
    const page = await browser.signedIn(key.token);
    await startWithPhoto(page);
    await page.getByRole('button', { name: 'Repaint a part' }).click();
    const canvas = page.locator('.mask-canvas');
    const { x, y, width, height } = (await canvas.boundingBox())!;
    const stroke = async (from: readonly [number, number], to: readonly [number, number]): Promise<void> => {
      await page.mouse.move(x + from[0] * width, y + from[1] * height);
      await page.mouse.down();
      await page.mouse.move(x + to[0] * width, y + to[1] * height, { steps: 5 });
      await page.mouse.up();
    };
    await stroke([0.2, 0.2], [0.8, 0.2]);
    await stroke([0.2, 0.8], [0.8, 0.8]);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Eraser', { exact: true }).click();
    await stroke([0.7, 0.2], [0.9, 0.2]);
    expect(await faults(page)).toEqual([]);
    await page.getByLabel('Soft edge (feather)').fill('40');
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByAltText('What is repainted, in white').waitFor();
    expect(await faults(page)).toEqual([]);
    const mask = await maskOf(await sent(page, 'a green star'));
    // A soft edge reaches the middle of a narrow stroke.
    expect(mask.at(0.3, 0.2)).toBeGreaterThan(240);
    expect([mask.at(0.8, 0.2), mask.at(0.5, 0.8), mask.at(0.5, 0.5)]).toEqual([0, 0, 0]);
    const soft = [...mask.values].filter((value) => value > 0 && value < 255).length;
    expect(soft / mask.values.length).toBeGreaterThan(0.01);

    // The painted mask is there to go on with.
    await page.getByRole('button', { name: 'Change the part' }).click();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect((await maskOf(await sent(page, 'a blue star'))).at(0.75, 0.2)).toBeGreaterThan(240);
  });

  it('is painted on by a finger, on a phone', async () => {
    const context = await browser.context({ hasTouch: true, isMobile: true, viewport: { width: 360, height: 740 } });
    const page = await browser.signedIn(key.token, context);
    await startWithPhoto(page);
    await page.getByRole('button', { name: 'Repaint a part' }).tap();
    const { x, y, width, height } = (await page.locator('.mask-canvas').boundingBox())!;
    const devtools = await context.newCDPSession(page);
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', ...points: (readonly [number, number])[]) =>
      devtools.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: points.map(([left, top]) => ({ x: x + left * width, y: y + top * height })),
      });
    await touch('touchStart', [0.5, 0.2]);
    for (const top of [0.4, 0.6, 0.8]) await touch('touchMove', [0.5, top]);
    await touch('touchEnd');
    expect(await tooWide(page)).toEqual([]);
    const tools = (await page.locator('.mask-tools').boundingBox())!;
    expect(tools.y).toBeGreaterThanOrEqual(y + height);
    await page.getByRole('button', { name: 'Done' }).tap();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const mask = await maskOf(await sent(page, 'a red star'));
    expect([mask.at(0.5, 0.3), mask.at(0.5, 0.7), mask.at(0.1, 0.5)]).toEqual([255, 255, 0]);
  });

  it('repaints a rectangle of a picture of the gallery by the keyboard alone', async () => {
    const page = await browser.signedIn(key.token);
    await drawn(page, 'a red square');
    await page.getByRole('button', { name: 'a red square (Finished)' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Repaint a part' }).press('Enter');
    await page.locator('.mask-canvas').waitFor();
    await page.getByText('Rectangle', { exact: true }).press('Enter');
    for (let n = 0; n < 5; n++) await page.getByLabel('From the left').press('ArrowLeft');
    await page.locator('.mask-stage .rectangle').waitFor();
    await page.getByRole('button', { name: 'Repaint it' }).press('Enter');
    expect(await faults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Done' }).press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const made = await sent(page, 'a blue square');
    expect(made.image).toBe((await list())[1].images[0]);
    const mask = await maskOf(made);
    expect([mask.at(0.22, 0.5), mask.at(0.18, 0.5), mask.at(0.5, 0.3), mask.at(0.5, 0.2)]).toEqual([255, 0, 255, 0]);
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
