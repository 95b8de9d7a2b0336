import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { runModels } from '../../apps/cli/src/models-command';
import type { ProblemJson } from '../support/factories';
import { unpackFamily } from '../support/families';
import { ofSuite } from '../support/of-suite';
import { startTestService } from '../support/service';

interface RecordJson {
  status: string;
  error: string | null;
  images: string[];
  control: object[];
}

const edge = 256;
const index = join('vae', 'diffusion_pytorch_model.safetensors.index.json');

/** A model, the same without an encoder, and a ControlNet for both, as an operator installs them. */
async function installModels(): Promise<{ folder: string; close: () => Promise<void> }> {
  const site = await mkdtemp(join(tmpdir(), 'darkroom-follow-'));
  const [folder, source] = [join(site, 'models'), join(site, 'sd15')];
  const add = async (args: string): Promise<void> => {
    let printed = '';
    const output = { write: (text: string) => (printed += text) };
    const code = await runModels(`add ${args}`.split(' '), {
      env: { MODELS_DIR: folder },
      stdout: output,
      stderr: output,
    });
    if (code !== 0) throw new Error(printed);
  };
  await unpackFamily('sd15', source);
  await writeFile(join(source, 'model', 'darkroom.json'), JSON.stringify({ size: edge }));
  await add(`${source}/model --as tiny`);
  await add(`${source}/control --as edges --kind control`);
  const { weight_map: names, ...rest } = JSON.parse(await readFile(join(source, 'model', index), 'utf8')) as {
    weight_map: Record<string, string>;
  };
  const kept = Object.entries(names).filter(([name]) => !/^(?:encoder|quant_conv)\./.test(name));
  await writeFile(join(source, 'model', index), JSON.stringify({ ...rest, weight_map: Object.fromEntries(kept) }));
  await add(`${source}/model --as blind`);
  return { folder, close: () => rm(site, { recursive: true }) };
}

describe('Following a picture with an installed ControlNet', () => {
  const models = ofSuite(installModels);
  const service = ofSuite(() =>
    startTestService({ env: { MODELS_DIR: models.folder, PUBLIC_URL: 'https://darkroom.example' } }),
  );
  const key = ofSuite(() => service.createKey());

  const create = (body: object, path = '/v1/sd/text-to-image') =>
    service.request<RecordJson & ProblemJson>('POST', path, {
      key,
      body: { prompt: 'a house', model: 'tiny', seed: 7, steps: 4, ...body },
      headers: { prefer: 'wait=60' },
    });
  const draw = async (body: object): Promise<Buffer> => {
    const { status, body: record } = await create(body);
    expect([status, record.status, record.error]).toEqual([201, 'succeeded', null]);
    const file = await fetch(service.baseUrl + new URL(record.images[0]).pathname);
    return sharp(await file.arrayBuffer())
      .removeAlpha()
      .raw()
      .toBuffer();
  };
  const refusal = async (body: object, path?: string) => {
    const { status, body: problem } = await create(body, path);
    return [status, problem.code, problem.errors?.map(({ pointer }) => pointer)];
  };
  const upload = async (background: string, square?: string): Promise<string> => {
    const plain = (size: number, colour: string) =>
      sharp({ create: { width: size, height: size, channels: 3, background: colour } }).png();
    const parts = square ? [{ input: await plain(edge / 2, square).toBuffer() }] : [];
    const raw = await plain(edge, background).composite(parts).toBuffer();
    const { status, body } = await service.request<{ url: string }>('POST', '/v1/uploads', { key, raw });
    expect(status).toBe(201);
    return body.url;
  };

  it('draws its edges, as strongly and as long as is asked for', async () => {
    const [black, grey, house] = [await upload('#000'), await upload('#999'), await upload('#999', '#222')];
    const following = (image: string, more: object = {}) =>
      draw({ control: [{ image, model: 'edges', scale: 2, ...more }] });
    const preprocess = 'canny';
    const [text, edges] = [await draw({}), await following(house, { preprocess })];
    expect(edges.equals(text)).toBe(false);
    // A plain picture has no edges: its map is black.
    const none = await following(grey, { preprocess });
    expect(none.equals(await following(black))).toBe(true);
    expect(none.equals(edges)).toBe(false);
    // Of four steps all but the first, and none.
    const late = await following(house, { preprocess, start: 0.25 });
    expect([late.equals(edges), late.equals(text)]).toEqual([false, false]);
    expect((await following(house, { preprocess, start: 0.3, end: 0.4 })).equals(text)).toBe(true);
    expect((await following(house, { preprocess, scale: 0 })).equals(text)).toBe(true);
  });

  it('is refused where it ends before it starts, and for what draws by itself', async () => {
    const image = await upload('#000');
    const control = (more: object) => ({
      control: [
        { image, model: 'edges' },
        { image, model: 'edges', ...more },
      ],
    });
    expect(await refusal(control({ start: 0.5, end: 0.5 }))).toEqual([400, 'ValidationFailed', ['/control/1/end']]);
    expect(await refusal(control({ start: 1 }))).toEqual([400, 'ValidationFailed', ['/control/1/end']]);
    expect(await refusal(control({ end: 1.1 }))).toEqual([400, 'ValidationFailed', ['/control/1/end']]);
    expect(await refusal(control({ model: 'tiny' }))).toEqual([422, 'ControlNotInstalled', ['/control/1/model']]);
  });

  it('needs no encoder, without which a model reads neither a picture nor a mask, and learns none', async () => {
    const image = await upload('#000');
    const control = [{ image, model: 'edges' }];
    await draw({ model: 'blind', control });
    const code = 'PictureUnsupported';
    expect(await refusal({ model: 'blind', image, control })).toEqual([422, code, ['/image']]);
    expect(await refusal({ model: 'blind', image, mask: image })).toEqual([422, code, ['/image', '/mask']]);
    await draw({ image, mask: await upload('#fff'), control });
    const body = {
      name: 'house',
      model: 'blind',
      images_url: [1, 2, 3, 4].map((n) => `https://pictures.example/${n}.png`),
    };
    const training = await service.request<ProblemJson>('POST', '/v1/finetunes', { key, body });
    expect([training.status, training.body.code]).toEqual([422, 'TrainingUnsupported']);
    const list = await service.request<{ name: string }[]>('GET', '/v1/finetunes', { key });
    expect(list.body).toEqual([]);
  });
});
