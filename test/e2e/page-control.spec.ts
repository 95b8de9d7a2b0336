import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ModelStore } from '@app/model-store';
import sharp from 'sharp';
import { browserOfSuite, describeInBrowser, faults } from '../support/browser';
import { unpackFamily } from '../support/families';
import { ofSuite } from '../support/of-suite';
import { startTestService } from '../support/service';
import { until } from '../support/until';

jest.setTimeout(600_000);

describeInBrowser('The form of the page, where a ControlNet is installed', () => {
  const models = ofSuite(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'darkroom-control-'));
    await unpackFamily('sd15', join(folder, 'sd15'));
    const store = new ModelStore(join(folder, 'models'));
    await store.add(join(folder, 'sd15', 'model'), { as: 'tiny' });
    await store.add(join(folder, 'sd15', 'control'), { as: 'edges', kind: 'control' });
    return { folder: join(folder, 'models'), close: () => rm(folder, { recursive: true }) };
  });
  const service = ofSuite(() =>
    startTestService({ env: { MODELS_DIR: models.folder, PUBLIC_URL: 'https://pictures.example' } }),
  );
  const browser = browserOfSuite(service);

  it('follows the edges of a picture, which it shows, and brings them back', async () => {
    const key = await service.createKey();
    const page = await browser.signedIn(key.token);
    const square = { create: { width: 120, height: 120, channels: 3 as const, background: '#fff' } };
    const buffer = await sharp({ create: { width: 400, height: 400, channels: 3, background: '#000' } })
      .composite([{ input: square }])
      .png()
      .toBuffer();
    await page.getByLabel('Picture to follow').setInputFiles({ name: 'square.png', mimeType: 'image/png', buffer });
    await page.getByText('Follow its edges').click();
    await until(() => page.evaluate<boolean>(`(${whitePixels}) > 100`), 'the edges are shown');
    // An outline of some pixels, of a picture that is mostly none.
    expect(await page.evaluate<number>(whitePixels)).toBeLessThan(4000);
    await page.getByLabel('How strongly').fill('0.5');
    await page.getByLabel('From', { exact: true }).fill('0.25');
    await page.getByLabel('Until').fill('0.75');
    expect(await faults(page)).toEqual([]);
    await page.getByLabel('Prompt', { exact: true }).fill('a house');
    await page.getByRole('button', { name: 'Draw', exact: true }).click();
    const tile = page.getByRole('button', { name: /^a house \(/ });
    await tile.waitFor();
    const { body } = await service.request<{ control: object[] }[]>('GET', '/v1/sd/text-to-image', { key });
    expect(body[0].control).toMatchObject([
      { model: 'edges', scale: 0.5, start: 0.25, end: 0.75, preprocess: 'canny' },
    ]);
    await page.getByRole('button', { name: 'Follow picture no more' }).click();
    await tile.click();
    await page.getByRole('button', { name: 'Reuse' }).click();
    expect(await page.getByLabel('How strongly').inputValue()).toBe('0.5');
    expect(await page.getByLabel('Follow its edges').isChecked()).toBe(true);
  });
});

const whitePixels = `(() => {
  const canvas = document.querySelector('.canny');
  if (!canvas || canvas.width === 0) return 0;
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return data.filter((value, at) => at % 4 === 0 && value === 255).length;
})()`;
