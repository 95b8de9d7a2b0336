import { resolve } from 'node:path';
import { browserOfSuite, describeInBrowser, faults, tooWide } from '../support/browser';
import { ofSuite, ofTest } from '../support/of-suite';
import { startPictureServer } from '../support/picture-server';
import { modelsTrainedWith, trainableModels } from '../support/quick-model';
import { startTestService } from '../support/service';
import { robotPictures } from '../support/trainings';

const photos = robotPictures().map((buffer, i) => ({ name: `robot-${i}.png`, mimeType: 'image/png', buffer }));
const weights = resolve('test', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors');
/** A training that nobody waits for: it is met in its middle, and canceled. */
const steps = 5000;

jest.setTimeout(300_000);

describeInBrowser('The page of Fine-Tunes', () => {
  const models = ofSuite(async () => modelsTrainedWith(trainableModels(), { steps }));
  const service = ofSuite(() =>
    startTestService({
      env: { PUBLIC_URL: 'https://pictures.example', MODELS_DIR: models.folder, PICTURES_ALLOW_PRIVATE: 'on' },
    }),
  );
  const paths = [1, 2, 3, 4].map((n) => `/silent-${n}.png`);
  const silent = ofSuite(() => startPictureServer(Object.fromEntries(paths.map((path) => [path, () => undefined]))));
  const browser = browserOfSuite(service);
  const key = ofTest(() => service.createKey());

  const silentPictures = () => paths.map((path) => silent.url + path);
  const list = async () =>
    (await service.request<{ name: string; status: string }[]>('GET', '/v1/finetunes', { key })).body;

  it('trains one from photos on a phone, shows how it goes, and cancels it', async () => {
    const context = await browser.context({ hasTouch: true, isMobile: true, viewport: { width: 360, height: 740 } });
    const page = await browser.signedIn(key.token, context);
    await page.getByRole('link', { name: 'Fine-Tunes' }).tap();
    const choose = page.getByLabel('Photos to train from');
    const broken = { name: 'broken.png', mimeType: 'image/png', buffer: Buffer.from('this is no picture') };
    await choose.setInputFiles([...photos.slice(0, 3), broken]);
    await page.locator('.photos .problem').waitFor();
    await page.getByText('At least 4 photos are needed; 3 photos are there.').waitFor();
    expect(await page.getByRole('button', { name: 'Train', exact: true }).isDisabled()).toBe(true);
    expect([await faults(page), await tooWide(page)]).toEqual([[], []]);
    await page.getByRole('button', { name: 'Leave broken.png out' }).tap();
    await choose.setInputFiles(photos.slice(3));
    await page.getByText('4 photos are there.').waitFor();
    await page.getByLabel('What it is').fill('robot');
    await page.getByRole('button', { name: 'Train', exact: true }).tap();
    await page.getByRole('progressbar', { name: 'Training of robot' }).waitFor();
    expect(await list()).toMatchObject([{ name: 'robot' }]);
    await page.getByText(new RegExp(`^Step \\d+ of ${steps}, about .* left$`)).waitFor();
    await page.getByRole('img', { name: /^Loss from [\d.e-]+ to [\d.e-]+$/ }).waitFor();
    expect(await faults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Cancel the training' }).tap();
    await page.getByRole('button', { name: 'Cancel it' }).tap();
    await page.getByText('Canceled', { exact: true }).waitFor();
    expect(await list()).toMatchObject([{ name: 'robot', status: 'canceled' }]);
  });

  it('draws with one whose training was canceled only once it has weights', async () => {
    const body = { name: 'robot', title: 'My robot', model: 'shapes', images_url: silentPictures() };
    const { body: made } = await service.request<{ id: string }>('POST', '/v1/finetunes', { key, body });
    await service.request('POST', `/v1/finetunes/${made.id}/cancel`, { key });
    const page = await browser.signedIn(key.token);
    const choices = () => page.getByLabel('Model', { exact: true }).locator('optgroup[label="Fine-Tunes"] option');
    const go = (name: string) => page.getByRole('link', { name, exact: true }).first().click();
    await go('Fine-Tunes');
    await page.getByText('Canceled', { exact: true }).waitFor();
    const draw = page.getByRole('button', { name: 'Draw with it' });
    expect(await draw.isDisabled()).toBe(true);
    await go('Draw');
    await page.getByLabel('Prompt', { exact: true }).waitFor();
    expect(await choices().allTextContents()).toEqual([]);
    await go('Collections');
    await page.locator('a.cover').first().click();
    await page.getByText('Make a Fine-Tune with weights first').waitFor();

    await go('Fine-Tunes');
    await page.getByLabel('Weights for My robot').setInputFiles(weights);
    await page.getByText('Ready', { exact: true }).waitFor();
    await draw.click();
    expect(await choices().allTextContents()).toEqual(['My robot']);
  });

  it('shows that the photos are read once it was waiting', async () => {
    const train = async (name: string): Promise<string> => {
      const body = { name, model: 'shapes', images_url: silentPictures() };
      const reply = await service.request<{ id: string }>('POST', '/v1/finetunes', { key, body });
      expect([reply.status, reply.text]).toEqual([201, expect.any(String)]);
      return reply.body.id;
    };
    const first = await train('robot');
    await train('dog');
    const page = await browser.signedIn(key.token);
    await page.getByRole('link', { name: 'Fine-Tunes' }).click();
    const [dog, robot] = ['dog', 'robot'].map((name) =>
      page.locator('.training').filter({ has: page.getByRole('progressbar', { name: `Training of ${name}` }) }),
    );
    await robot.getByText('Reading the photos').waitFor();
    await dog.getByText('Waiting for its turn').waitFor();
    await service.request('POST', `/v1/finetunes/${first}/cancel`, { key });
    await dog.getByText('Reading the photos').waitFor();
  });
});
