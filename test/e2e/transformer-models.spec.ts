import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ModelDefaults, ModelStore } from '@app/model-store';
import sharp from 'sharp';
import { describeInBrowser, faults, TestBrowser } from '../support/browser';
import { unpackTransformerModel } from '../support/families';
import { ofSuite } from '../support/of-suite';
import { startTestService } from '../support/service';
import { Trainer } from '../support/trainings';
import { until } from '../support/until';

jest.setTimeout(600_000);

interface RecordJson {
  status: string;
  error: string | null;
  images: string[];
  served_by: string;
  cfg: number;
  steps: number;
}

type AddedAs = ModelDefaults & { precision?: 'int8' };

const models = ofSuite(async () => {
  const root = await mkdtemp(join(tmpdir(), 'darkroom-transformers-'));
  const store = new ModelStore(join(root, 'models'));
  const add = async (name: string, as: string, { precision, ...defaults }: AddedAs = {}): Promise<void> => {
    await unpackTransformerModel(name, join(root, name));
    await store.add(join(root, name), { as, defaults: { size: 256, ...defaults }, ...(precision && { precision }) });
  };
  const training = { steps: 50, learning_rate: 5e-3, rank: 2 };
  await add('flux2-klein-base', 'klein-base');
  await add('flux2-klein', 'klein', { precision: 'int8', train_on: 'klein-base', training });
  await add('flux2-klein', 'klein-lost', { train_on: 'nowhere' });
  await add('z-image', 'z-image');
  await add('z-image-turbo', 'z-image-int8', { precision: 'int8' });
  return { folder: join(root, 'models'), close: () => rm(root, { recursive: true }) };
});
const service = ofSuite(() =>
  startTestService({ env: { MODELS_DIR: models.folder, PUBLIC_URL: 'https://darkroom.example' } }),
);
const key = ofSuite(() => service.createKey());

const post = (body: object) =>
  service.request<RecordJson & { code: string; errors: object[] }>('POST', '/v1/sd/text-to-image', {
    key,
    body: { seed: 7, ...body },
    headers: { prefer: 'wait=100' },
  });

/** A picture to the byte. */
async function draw(body: object): Promise<{ record: RecordJson; url: string; file: Buffer }> {
  const { status, body: record } = await post(body);
  expect([status, record.status, record.error]).toEqual([201, 'succeeded', null]);
  const [url] = record.images;
  return { record, url, file: Buffer.from(await (await fetch(service.baseUrl + new URL(url).pathname)).arrayBuffer()) };
}

const pixelsOf = async (file: Buffer): Promise<Buffer> => sharp(file).removeAlpha().raw().toBuffer();

describe('FLUX.2 [klein]', () => {
  it('draws with the steps and the guidance of its kind, from a picture and in a part of it too', async () => {
    const { record, url, file } = await draw({ model: 'klein', prompt: 'a fox' });
    expect(record).toMatchObject({
      steps: 4,
      cfg: 1,
      served_by: expect.stringMatching(/^klein@[0-9a-f]{12}-int8$/) as string,
    });
    const before = await pixelsOf(file);
    const again = await draw({ model: 'klein', prompt: 'a hen', image: url, strength: 0.5 });
    expect(await pixelsOf(again.file)).not.toEqual(before);
    const half = { create: { width: 128, height: 256, channels: 3, background: '#fff' } } as const;
    const mask = await sharp({ create: { width: 256, height: 256, channels: 3, background: '#000' } })
      .composite([{ input: await sharp(half).png().toBuffer(), left: 0, top: 0 }])
      .png()
      .toBuffer();
    const upload = await service.request<{ url: string }>('POST', '/v1/uploads', { key, raw: mask });
    const body = { model: 'klein', prompt: 'a hen', image: url, mask: upload.body.url };
    const painted = await pixelsOf((await draw(body)).file);
    const isKept = (_: number, i: number): boolean => Math.floor(i / 3) % 256 >= 128;
    expect(painted.filter(isKept)).toEqual(before.filter(isKept));
    expect(painted).not.toEqual(before);
  });

  it('looks at pictures, in their order, and draws the same beside others', async () => {
    const [first, second] = [
      await draw({ model: 'klein', prompt: 'a fox' }),
      await draw({ model: 'klein', prompt: 'a hen', seed: 8, aspect_ratio: 'portrait' }),
    ];
    const body = { model: 'klein', prompt: 'the first beside the second', references: [first.url, second.url] };
    const turned = { ...body, references: body.references.toReversed() };
    const bodies = [body, turned, { ...body, references: [first.url] }, { ...body, references: [] }];
    const alone: Buffer[] = [];
    for (const each of bodies) alone.push((await draw(each)).file);
    expect(new Set(await Promise.all(alone.map(async (file) => (await pixelsOf(file)).toString('hex')))).size).toBe(4);
    const together = await Promise.all([...bodies, ...bodies].map((each) => draw(each)));
    expect(together.map(({ file }) => file)).toEqual([...alone, ...alone]);
  });

  it.each([
    [{ negative_prompt: 'a hen' }, 422, '/negative_prompt'],
    [{ prompt_weighting: true }, 422, '/prompt_weighting'],
    [{ scheduler: 'ddim' }, 422, '/scheduler'],
    [{ prompt: 'a hen '.repeat(300) }, 422, '/prompt'],
  ])('refuses what it cannot do with a sentence that names the field: %#', async (body, status, pointer) => {
    const reply = await post({ model: 'klein', prompt: 'a fox', ...body });
    expect([reply.status, reply.body.errors]).toMatchObject([status, [{ pointer }]]);
  });
});

describe('Z-Image', () => {
  it('draws three words beside two hundred as it does alone', async () => {
    const short = { model: 'z-image', prompt: 'a red fox', steps: 4, negative_prompt: 'grey' };
    const long = { ...short, prompt: 'a fox and a hen '.repeat(40), cfg: 1, negative_prompt: null };
    const alone = [await draw(short), await draw(long)];
    const together = await Promise.all([short, long, short, long].map((body) => draw(body)));
    expect(together.map(({ file }) => file.equals(alone[0].file))).toEqual([true, false, true, false]);
    expect(together.map(({ file }) => file.equals(alone[1].file))).toEqual([false, true, false, true]);
  });

  it('in int8 says so wherever it is named', async () => {
    const { record, file } = await draw({ model: 'z-image-int8', prompt: 'a fox' });
    expect(record).toMatchObject({ steps: 8, cfg: 1, served_by: expect.stringMatching(/-int8$/) as string });
    expect(file.includes('"precision":"int8"')).toBe(true);
    const { body } = await service.request<object[]>('GET', '/v1/models', { key });
    expect(body).toContainEqual(
      expect.objectContaining({ name: 'z-image-int8', family: 'z-image', precision: 'int8' }),
    );
  });
});

describe('A Fine-Tune of FLUX.2 [klein]', () => {
  it('is trained on the model that its own names, whatever its precision, and drawn with its own', async () => {
    const caller = new Trainer(service, key);
    const request = { model: 'klein', images_url: await caller.upload(), prompts: [{ prompt: 'a robot' }] };
    const { id, prompts } = await caller.train(request);
    expect(await caller.has(id, 'ready')).toMatchObject({
      ...{ note: null, training: { step: 50 } },
      weights: { kind: 'lora', base: expect.stringMatching(/^klein@/) as string },
    });
    const drawn = await until(async () => {
      const found = await caller.get<{ status: string; served_by: string }>(id, `/prompts/${prompts[0]}/status`);
      return found.status === 'succeeded' && found;
    }, 'the Prompt is drawn');
    expect(drawn.served_by).toMatch(/^klein@[0-9a-f]{12}-int8\+[0-9a-f]{12}$/);
  });

  it.each([
    ['z-image-int8', /are in int8, which cannot be trained/],
    ['klein-lost', /has it trained on "nowhere", which is not installed\.$/],
  ])('is refused at once where nothing can be trained: %s', async (model, sentence) => {
    const urls = Array.from({ length: 4 }, (_, i) => `https://pictures.example/${i}.png`);
    const body = { name: 'robot', model, images_url: urls };
    const reply = await service.request<{ code: string; detail: string }>('POST', '/v1/finetunes', { key, body });
    expect([reply.status, reply.body.code]).toEqual([422, 'TrainingUnsupported']);
    expect(reply.body.detail).toMatch(sentence);
    const { body: all } = await service.request<{ name: string; cannot: object }[]>('GET', '/v1/models', { key });
    const { cannot } = all.find(({ name }) => name === model)!;
    expect(cannot).toMatchObject({ training: expect.stringMatching(sentence) as string });
  });
});

describeInBrowser('The form of the page, with a distilled model', () => {
  it('leaves out what the model refuses', async () => {
    const browser = await TestBrowser.start(service.baseUrl);
    const page = await browser.signedIn(key.token);
    await page.getByLabel('Model', { exact: true }).selectOption('z-image');
    await page.getByLabel('Negative prompt').fill('a hen');
    await page.getByLabel('Model', { exact: true }).selectOption('klein');
    expect(await page.getByLabel('Negative prompt').isDisabled()).toBe(true);
    await page.getByText('It is off. It was distilled to draw without guidance.').waitFor();
    expect(await page.getByLabel('Guidance (cfg)').isDisabled()).toBe(true);
    const named = page.getByLabel('Model', { exact: true }).locator('option');
    expect(await named.allTextContents()).toContain('z-image-int8 (Z-Image, int8)');
    expect(await page.getByLabel('Weights in the prompt').count()).toBe(0);
    expect(await page.getByLabel('Scheduler').locator('option').count()).toBe(6);
    await page.getByLabel('Prompt', { exact: true }).fill('a blue fox');
    const blank = { create: { width: 96, height: 64, channels: 3, background: '#c0f' } } as const;
    const buffer = await sharp(blank).png().toBuffer();
    const files = ['cat.png', 'hat.png'].map((name) => ({ name, mimeType: 'image/png', buffer }));
    await page.getByLabel('Pictures to look at').setInputFiles(files);
    await page.getByAltText('Picture 2 to look at').waitFor();
    await page.getByLabel('Model', { exact: true }).selectOption('z-image');
    expect(await page.getByText('Look at pictures').count()).toBe(0);
    await page.getByLabel('Model', { exact: true }).selectOption('klein');
    expect(await faults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Draw', exact: true }).click();
    await page.getByRole('button', { name: /^a blue fox \(/ }).waitFor();
    const { body: drawn } = await service.request<{ references: string[] }[]>('GET', '/v1/sd/text-to-image?limit=1', {
      key,
    });
    expect(drawn[0].references).toHaveLength(2);
    await page.getByRole('link', { name: 'Fine-Tunes' }).click();
    const untrained = page.getByLabel('Model that learns it').locator('option:disabled');
    expect(await untrained.allTextContents()).toContainEqual(
      expect.stringMatching(/^z-image-int8 \(Z-Image, int8\): The weights of this model are in int8/),
    );
    expect(await browser.closePages()).toEqual([]);
    await browser.close();
  });
});
