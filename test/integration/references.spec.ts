import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newIdentifier, PictureUse, UploadedPicture } from '@app/domain';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import OpenAI, { toFile } from 'openai';
import sharp from 'sharp';
import { startTestApi, type TestKey } from '../support/api';
import { makeFinetune, type ProblemJson } from '../support/factories';
import { unpackTransformerModel } from '../support/families';
import { ofSuite } from '../support/of-suite';
import { startPictureServer } from '../support/picture-server';
import { until } from '../support/until';

interface RecordJson {
  id: string;
  status: string;
  image: string | null;
  aspect_ratio: string | null;
  width: number;
  height: number;
  error: string | null;
  images: string[];
  references?: string[];
}

const pictureOf = (width: number, height: number): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background: '#c0f' } })
    .png()
    .toBuffer();

const models = ofSuite(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-references-'));
  await unpackTransformerModel('flux2-klein', join(folder, 'klein'));
  await unpackTransformerModel('z-image-turbo', join(folder, 'z-image'));
  return { folder, close: () => rm(folder, { recursive: true }) };
});
const api = ofSuite(() =>
  startTestApi({
    MODELS_DIR: models.folder,
    PICTURES_ALLOW_PRIVATE: 'true',
    PUBLIC_URL: 'https://darkroom.example',
  }),
);
const server = ofSuite(async () =>
  startPictureServer({ '/cat.png': await pictureOf(200, 100), '/dot.png': await pictureOf(20, 20) }),
);
const key = ofSuite(() => api.createKey());
const sandbox = ofSuite(() => api.createKey({ sandbox: true }));

const post = <T = RecordJson & ProblemJson>(path: string, body: unknown, owner: TestKey = key) =>
  api.request<T>('POST', `/v1${path}`, { key: owner, body });
const create = (body: object, owner: TestKey = key) =>
  post('/sd/text-to-image', { prompt: 'the first beside the second', model: 'klein', ...body }, owner);

/** An upload, as its own route makes it. */
async function upload(width: number, height: number): Promise<{ id: string; url: string }> {
  const png = await pictureOf(width, height);
  const [id, token] = [newIdentifier(), newIdentifier()];
  const row = { id, ownerId: key.id, token, storageKey: `uploads/${id}.png`, contentType: 'image/png' };
  await api.app.get<ImageStorage>(IMAGE_STORAGE).write(row.storageKey, png);
  const rest = { width, height, bytes: png.length, createdAt: new Date() };
  await api.dataSource.manager.insert(UploadedPicture, { ...row, ...rest });
  return { id, url: `${api.config.publicUrl}/images/${token}.png` };
}

describe('Pictures that a model looks at', () => {
  it('are shown as they were sent, in their order, and there are none by default', async () => {
    const references = [`${server.url}/cat.png`, `${server.url}/dot.png`, `${server.url}/cat.png`];
    const { status, body } = await create({ references });
    expect([status, body.references]).toEqual([201, references]);
    const found = await api.request<RecordJson>('GET', `/v1/sd/text-to-image/${body.id}`, { key });
    expect(found.body).toEqual(body);
    expect((await create({ references: [] })).body.references).toEqual([]);
    expect((await create({ references: [references[0]], image: references[0] })).status).toBe(201);
  });

  it('are in the parameters of the picture by their hashes', async () => {
    const { body } = await create({ references: [`${server.url}/cat.png`] }, sandbox);
    const drawn = await until(async () => {
      const found = await api.request<RecordJson>('GET', `/v1/sd/text-to-image/${body.id}`, { key: sandbox });
      return found.body.images.length > 0 && found.body;
    }, 'it is drawn');
    const file = await fetch(`${api.baseUrl}${new URL(drawn.images[0]).pathname}`);
    const text = Buffer.from(await file.arrayBuffer()).toString('latin1');
    expect(text).toMatch(/"references_sha256":\["[0-9a-f]{64}"\]/);
  });

  it('decide the shape by the first of them, if nothing else does', async () => {
    const sizeOf = ({ width, height }: RecordJson) => [width, height];
    const shapeOf = async (body: object) => sizeOf((await create(body)).body);
    const [tall, square] = [(await upload(64, 128)).url, (await upload(64, 64)).url];
    expect(await shapeOf({ references: [tall, square] })).toEqual([720, 1456]);
    expect(await shapeOf({ references: [square, tall] })).toEqual([1024, 1024]);
    expect(await shapeOf({ references: [square], image: tall })).toEqual([720, 1456]);
    expect(await shapeOf({ references: [tall], aspect_ratio: 'landscape' })).toEqual([1216, 832]);
    const { body } = await create({ references: [`${server.url}/cat.png`] }, sandbox);
    const drawn = await until(async () => {
      const found = await api.request<RecordJson>('GET', `/v1/sd/text-to-image/${body.id}`, { key: sandbox });
      return found.body.images.length > 0 && found.body;
    }, 'it is drawn');
    expect([sizeOf(body), sizeOf(drawn)]).toEqual([
      [1024, 1024],
      [1456, 720],
    ]);
  });

  it('are kept as long as the record', async () => {
    const [one, other] = [await upload(100, 80), await upload(64, 64)];
    const { body } = await create({ references: [one.url, other.url] });
    const uses = () => api.dataSource.manager.countBy(PictureUse, { taskId: body.id });
    expect(await uses()).toBe(2);
    await api.request('DELETE', `/v1/sd/text-to-image/${body.id}`, { key });
    expect(await uses()).toBe(0);
  });

  it('are taken by the Prompts of a Fine-Tune', async () => {
    const { id } = await makeFinetune(api, key, { model: 'klein' });
    const references = [`${server.url}/cat.png`];
    const { status, body } = await post<RecordJson[]>(`/finetunes/${id}/prompts`, [
      { prompt: 'a robot', references },
      { prompt: 'a robot' },
    ]);
    expect([status, body.map((prompt) => prompt.references)]).toEqual([201, [references, undefined]]);
    const found = await api.request<RecordJson>('GET', `/v1/finetunes/${id}/prompts/${body[0].id}`, { key });
    expect(found.body.references).toEqual(references);
    const styles = await post<ProblemJson>(`/finetunes/${id}/styles`, [{ id: 'x', references }]);
    expect(styles.body.errors).toMatchObject([{ pointer: '/0/references' }]);
  });

  it('fail the record with a sentence that names the field if one cannot be looked at', async () => {
    const { body } = await create({ references: [`${server.url}/cat.png`, `${server.url}/dot.png`] }, sandbox);
    const ended = await until(async () => {
      const found = await api.request<RecordJson>('GET', `/v1/sd/text-to-image/${body.id}`, { key: sandbox });
      return found.body.status === 'failed' && found.body;
    }, 'it has failed');
    expect(ended.error).toBe(
      'The picture in `references[1]` has 20 x 20 pixels, and at least 64 on each edge are needed in a picture that is looked at.',
    );
  });

  it('are refused at once where that can be known', async () => {
    const cat = `${server.url}/cat.png`;
    const refusal = async (body: object) => {
      const { status, body: problem } = await create(body);
      return [status, problem.code, problem.errors?.map(({ pointer }) => pointer)];
    };
    const nowhere = `${api.config.publicUrl}/images/${newIdentifier()}.png`;
    const small = (await upload(63, 200)).url;
    expect(await refusal({ references: [cat, nowhere] })).toEqual([422, 'PictureNotFound', ['/references/1']]);
    expect(await refusal({ references: [small] })).toEqual([422, 'PictureUnreadable', ['/references/0']]);
    expect(await refusal({ references: Array(5).fill(cat) })).toEqual([400, 'ValidationFailed', ['/references']]);
    expect(await refusal({ references: cat })).toEqual([400, 'ValidationFailed', ['/references']]);
    expect(await refusal({ references: [cat], image: cat, mask: cat })).toEqual([
      400,
      'ValidationFailed',
      ['/references'],
    ]);
    const { body } = await create({ references: [cat], model: 'z-image' });
    expect(body).toMatchObject({
      code: 'ModelTakesNoReferences',
      detail:
        'The model "z-image" takes no references: it looks at no pictures beside the text. Leave it out, or choose another model.',
      errors: [{ pointer: '/references' }],
    });
  });
});

/** By OpenAI's official client, with nothing but its address changed. */
describe('Several pictures of POST /v1/images/edits', () => {
  const edit = async (sizes: [number, number][], more: object = {}) => {
    const image = await Promise.all(
      sizes.map(async ([width, height]) => toFile(await pictureOf(width, height), 'a.png', { type: 'image/png' })),
    );
    const client = new OpenAI({ apiKey: sandbox.token, baseURL: `${api.baseUrl}/v1`, maxRetries: 0 });
    return client.images.edit({ image, prompt: 'both', model: 'klein', ...more }, { headers: idempotency(more) });
  };
  const idempotency = ({ user }: { user?: string }): Record<string, string> =>
    user ? { 'Idempotency-Key': user } : {};
  const uploads = () => api.dataSource.manager.countBy(UploadedPicture, { ownerId: sandbox.id });

  it('are looked at in their order, and kept with the record', async () => {
    const before = await uploads();
    const { data } = await edit([
      [100, 200],
      [80, 64],
    ]);
    expect(data).toHaveLength(1);
    const { body } = await api.request<RecordJson[]>('GET', '/v1/sd/text-to-image?limit=1', { key: sandbox });
    expect(body[0]).toMatchObject({ image: null, aspect_ratio: null, width: 720, height: 1456 });
    const sizes = await Promise.all(
      body[0].references!.map(async (url) => {
        const file = await fetch(`${api.baseUrl}${new URL(url).pathname}`);
        const { width, height } = await sharp(Buffer.from(await file.arrayBuffer())).metadata();
        return [width, height];
      }),
    );
    expect(sizes).toEqual([
      [100, 200],
      [80, 64],
    ]);
    expect((await uploads()) - before).toBe(2);
  });

  it('are told apart by an Idempotency-Key', async () => {
    const [one, other]: [number, number][] = [
      [100, 64],
      [64, 100],
    ];
    const first = await edit([one, other], { user: 'one' });
    expect((await edit([one, other], { user: 'one' })).data).toEqual(first.data);
    await expect(edit([other, one], { user: 'one' })).rejects.toMatchObject({ code: 'IdempotencyKeyReused' });
  });

  it('are refused of a model that changes one at a time, beside a mask, and if they are too many', async () => {
    const before = await uploads();
    const two: [number, number][] = [
      [64, 64],
      [64, 64],
    ];
    const mask = await toFile(await pictureOf(64, 64), 'a.png', { type: 'image/png' });
    await expect(edit(two, { model: 'z-image' })).rejects.toMatchObject({ status: 400, param: 'image' });
    await expect(edit(two, { mask })).rejects.toMatchObject({ status: 400, param: 'mask' });
    await expect(edit([...two, ...two, ...two.slice(1)])).rejects.toMatchObject({ status: 400, param: 'image' });
    expect(await uploads()).toBe(before);
  });
});
