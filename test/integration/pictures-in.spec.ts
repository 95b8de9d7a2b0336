import { newIdentifier, PictureUse, Task, UploadedPicture } from '@app/domain';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import sharp from 'sharp';
import { type Reply, startTestApi, type TestKey } from '../support/api';
import { drawTask, makeFinetune, type ProblemJson } from '../support/factories';
import { ofSuite, ofTest } from '../support/of-suite';
import { startPictureServer } from '../support/picture-server';
import { smallPicture } from '../support/small-picture';
import { until } from '../support/until';

interface RecordJson {
  id: string;
  status: string;
  aspect_ratio: string | null;
  width: number;
  height: number;
  image: string | null;
  strength: number | null;
  mask: string | null;
  error: string | null;
  error_message: string | null;
  images: string[];
}

const pictureOf = (width: number, height: number): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background: '#c0f' } })
    .png()
    .toBuffer();

describe('A picture to draw from', () => {
  const api = ofSuite(() => startTestApi({ PICTURES_ALLOW_PRIVATE: 'true', PUBLIC_URL: 'https://darkroom.example' }));
  const server = ofSuite(async () => {
    const [wide, tall] = [await pictureOf(200, 100), await pictureOf(90, 160)];
    const [page, black] = [Buffer.from('<!doctype html>'), await smallPicture('#000')];
    return startPictureServer({ '/wide.png': wide, '/tall.png': tall, '/page.html': page, '/black.png': black });
  });
  const key = ofTest(() => api.createKey());
  const sandbox = ofSuite(() => api.createKey({ sandbox: true }));

  const create = (body: object, owner: TestKey = key): Promise<Reply<RecordJson & ProblemJson>> =>
    api.request('POST', '/v1/sd/text-to-image', { key: owner, body: { prompt: 'a star', ...body } });
  const refusal = async (body: object) => {
    const { status, body: problem } = await create(body);
    return [status, problem.code, problem.errors?.map(({ pointer }) => pointer)];
  };
  const ended = (id: string) =>
    until(async () => {
      const { body } = await api.request<RecordJson>('GET', `/v1/sd/text-to-image/${id}`, { key: sandbox });
      return ['succeeded', 'failed'].includes(body.status) && body;
    }, 'it has ended');
  const shapeOf = ({ aspect_ratio, width, height }: RecordJson) => [aspect_ratio, width, height];
  /** An upload, as its own route makes it. */
  const upload = async (owner: TestKey, width: number, height: number) => {
    const png = await pictureOf(width, height);
    const [id, token] = [newIdentifier(), newIdentifier()];
    const row = { id, ownerId: owner.id, token, storageKey: `uploads/${id}.png`, contentType: 'image/png' };
    await api.app.get<ImageStorage>(IMAGE_STORAGE).write(row.storageKey, png);
    const rest = { width, height, bytes: png.length, createdAt: new Date() };
    await api.dataSource.manager.insert(UploadedPicture, { ...row, ...rest });
    return { id, url: `${api.config.publicUrl}/images/${token}.png` };
  };

  it('is shown as it was sent, with the defaults of what was not', async () => {
    const sent = { image: `${server.url}/wide.png`, mask: `${server.url}/tall.png` };
    const { status, body } = await create({ ...sent, aspect_ratio: 'portrait' });
    expect([status, body]).toEqual([
      201,
      expect.objectContaining({ ...sent, strength: 0.8, aspect_ratio: 'portrait' }),
    ]);
    const exact = await create({ ...sent, strength: 0.07 });
    expect(exact.body.strength).toBe(0.07);
    const found = await api.request<RecordJson>('GET', `/v1/sd/text-to-image/${body.id}`, { key });
    expect(found.body).toEqual(body);
    expect(server.asked).toEqual([]);
  });

  it('from elsewhere decides the shape when it is read, if nothing else does', async () => {
    const draw = async (path: string) => ended((await create({ image: server.url + path }, sandbox)).body.id);
    const [wide, tall] = [await draw('/wide.png'), await draw('/tall.png')];
    expect([wide, tall].map(shapeOf)).toEqual([
      [null, 736, 352],
      [null, 384, 672],
    ]);
    const file = await fetch(`${api.baseUrl}${new URL(wide.images[0]).pathname}`);
    const bytes = Buffer.from(await file.arrayBuffer());
    expect(await sharp(bytes).metadata()).toMatchObject({ width: wide.width, height: wide.height });
    expect(bytes.toString('latin1')).toMatch(/"image_sha256":"[0-9a-f]{64}","strength":0.8/);
  });

  it('of the service decides the shape at once, and is kept as long as the record', async () => {
    const { id, url } = await upload(key, 300, 100);
    const { status, body } = await create({ image: url, mask: url });
    expect([status, shapeOf(body)]).toEqual([201, [null, 896, 288]]);
    const uses = () => api.dataSource.manager.countBy(PictureUse, { uploadId: id });
    expect(await uses()).toBe(1);
    await api.request('DELETE', `/v1/sd/text-to-image/${body.id}`, { key });
    expect(await uses()).toBe(0);
  });

  it('may be one of a record', async () => {
    const first = await create({});
    await drawTask(api, first.body.id);
    const { body } = await api.request<RecordJson>('GET', `/v1/sd/text-to-image/${first.body.id}`, { key });
    expect((await create({ image: body.images[0] })).body).toMatchObject({
      ...{ aspect_ratio: null, width: 512, height: 512 },
      image: body.images[0],
    });
    const stranger = await api.createKey();
    const foreign = await create({ image: body.images[0] }, stranger);
    expect([foreign.status, foreign.body.code]).toEqual([422, 'PictureNotFound']);
  });

  it('fails the record with a sentence that names the field if it cannot be read', async () => {
    const image = `${server.url}/wide.png`;
    const draw = async (body: object) => ended((await create(body, sandbox)).body.id);
    expect(await draw({ image: `${server.url}/none.png` })).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/^The picture in `image` .*404/) as string,
    });
    expect(await draw({ image, mask: `${server.url}/black.png` })).toMatchObject({
      status: 'failed',
      error:
        'The picture in `mask` marks nothing: what is white is repainted, from 128 of 255 on, and what is transparent counts as black.',
    });
    expect(await draw({ image, mask: `${server.url}/page.html` })).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/^The picture in `mask` /) as string,
    });
  });

  it('is refused at once where that can be known', async () => {
    const image = `${server.url}/wide.png`;
    const nowhere = `${api.config.publicUrl}/images/${newIdentifier()}.png`;
    expect(await refusal({ image: nowhere })).toEqual([422, 'PictureNotFound', ['/image']]);
    expect(await refusal({ image, mask: nowhere })).toEqual([422, 'PictureNotFound', ['/mask']]);
    expect(await refusal({ mask: image, strength: 0.5 })).toEqual([422, 'PictureMissing', ['/mask', '/strength']]);
    expect(await refusal({ image, steps: 10, strength: 0.05 })).toEqual([422, 'StrengthTooLow', ['/strength']]);
    expect(await refusal({ control: [{ image, model: 'canny' }] })).toEqual([
      422,
      'ControlNotInstalled',
      ['/control/0/model'],
    ]);
  });

  it.each([
    [{ init_image: 'x' }, 'image'],
    [{ image_url: 'x' }, 'image'],
    [{ prompt_strength: 0.5 }, 'strength'],
    [{ denoising_strength: 0.5 }, 'strength'],
    [{ mask_image: 'x' }, 'mask'],
    [{ controlnet: [] }, 'control'],
    [{ loras: [] }, 'finetunes'],
  ])('%j is told what it is called here: %s', async (body, name) => {
    const { status, body: problem } = await create(body);
    expect([status, problem.errors?.[0].message]).toEqual([400, `is not a known field; it is called "${name}" here`]);
  });

  describe('of a Prompt', () => {
    const prompt = async (owner: TestKey, body: object) => {
      const { id } = await makeFinetune(api, owner, { name: 'star' });
      const path = `/v1/finetunes/${id}/prompts`;
      const sent = [{ prompt: 'a star' }, { prompt: 'a star', ...body }];
      return { path, reply: await api.request<(RecordJson & ProblemJson)[]>('POST', path, { key: owner, body: sent }) };
    };

    it('is shown, read and drawn from in the same way', async () => {
      const sent = { image: `${server.url}/tall.png`, strength: 0.5 };
      const { path, reply } = await prompt(sandbox, sent);
      const shown = reply.body.map(({ image, strength, mask }) => ({ image, strength, mask }));
      expect(shown).toEqual([{}, sent]);
      const drawn = await until(async () => {
        const { body } = await api.request<RecordJson>('GET', `${path}/${reply.body[1].id}`, { key: sandbox });
        return body.images.length > 0 && body;
      }, 'it is drawn');
      expect(drawn).toMatchObject({ ...sent, aspect_ratio: null });
    });

    it('is refused with its place in the body', async () => {
      const { reply } = await prompt(key, { strength: 0.5 });
      const problem = reply.body as unknown as ProblemJson;
      expect([reply.status, problem.code, problem.errors?.[0].pointer]).toEqual([422, 'PictureMissing', '/1/strength']);
      const { reply: other } = await prompt(key, { finetunes: [] });
      expect((other.body as unknown as ProblemJson).errors?.[0].message).toMatch(
        /send it to POST \/v1\/sd\/text-to-image/,
      );
    });
  });
});

describe('A picture at a private address', () => {
  const api = ofSuite(() => startTestApi({ PUBLIC_URL: 'http://127.0.0.1:3000' }));
  const key = ofSuite(() => api.createKey());
  const asked = async (path: string, body: object) => {
    const reply = await api.request<ProblemJson>('POST', path, { key, body });
    return [reply.status, reply.body.code, reply.body.errors?.map(({ pointer }) => pointer)];
  };
  const [outside, inside] = ['https://pictures.example/x.png', 'http://0x7f.1:3001/x.png'];

  it('is refused when it is named, whatever names it, and nothing is made', async () => {
    const refused = (...pointers: string[]) => [422, 'PictureAddressRefused', pointers];
    const generation = { prompt: 'a star', image: outside, mask: inside };
    expect(await asked('/v1/sd/text-to-image', generation)).toEqual(refused('/mask'));
    const { id } = await makeFinetune(api, key, { name: 'star' });
    const prompts = [{ prompt: 'a star' }, { prompt: 'a star', image: 'http://[fd00::1]/x.png' }];
    expect(await asked(`/v1/finetunes/${id}/prompts`, prompts)).toEqual(refused('/1/image'));
    const training = {
      name: 'star',
      images_url: [outside, inside, `${outside}?2`, `${inside}?2`],
      prompts: prompts.slice(1),
    };
    const all = refused('/images_url/1', '/images_url/3', '/prompts/0/image');
    expect(await asked('/v1/finetunes', training)).toEqual(all);
    expect(await api.dataSource.manager.countBy(Task, { ownerId: key.id })).toBe(0);
  });

  it("is taken where it is the service's own, and a name is looked up when it is drawn from", async () => {
    const raw = await pictureOf(64, 64);
    const { body } = await api.request<{ url: string }>('POST', '/v1/uploads', { key, raw });
    expect(body.url).toMatch(/^http:\/\/127\.0\.0\.1:3000\/images\//);
    const elsewhere = body.url.replace('127.0.0.1:3000', '10.0.0.5');
    for (const image of [body.url, elsewhere, 'http://pictures.invalid/x.png'])
      expect(await asked('/v1/sd/text-to-image', { prompt: 'a star', image })).toEqual([201, undefined, undefined]);
    // Both names of the upload keep it.
    expect(await api.dataSource.query('SELECT count(*)::integer FROM picture_uses')).toEqual([{ count: 2 }]);
    const unknown = elsewhere.replace(/[\w-]{24}/, 'A'.repeat(24));
    expect(await asked('/v1/sd/text-to-image', { prompt: 'a star', image: unknown })).toEqual([
      422,
      'PictureAddressRefused',
      ['/image'],
    ]);
  });
});
