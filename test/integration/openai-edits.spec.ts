import OpenAI, { toFile } from 'openai';
import sharp from 'sharp';
import { UploadedPicture } from '@app/domain';
import { startTestApi, type TestKey } from '../support/api';
import { ofSuite, ofTest } from '../support/of-suite';

interface RecordJson {
  id: string;
  image: string;
  mask: string | null;
  strength: number;
  aspect_ratio: string;
  num_generations: number;
  user: string | null;
}

/** A picture whose left half is transparent, if it is to be. */
const picture = async (width: number, height: number, isTransparent = false) => {
  const background = { r: 200, g: 30, b: 30, alpha: 1 };
  const whole = sharp({ create: { width, height, channels: isTransparent ? 4 : 3, background } });
  const hole = {
    create: { width: width / 2, height, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 1 } },
  } as const;
  const input = await sharp(hole).png().toBuffer();
  const cut = isTransparent ? whole.composite([{ input, left: 0, top: 0, blend: 'dest-out' }]) : whole;
  return toFile(await cut.png().toBuffer(), 'picture.png', { type: 'image/png' });
};

/** OpenAI's official client, with nothing but its address changed. */
describe('POST /v1/images/edits', () => {
  const api = ofSuite(() => startTestApi({ PUBLIC_URL: 'https://darkroom.example' }));
  const key = ofTest(() => api.createKey({ sandbox: true }));

  const clientOf = ({ token }: Pick<TestKey, 'token'>) =>
    new OpenAI({ apiKey: token, baseURL: `${api.baseUrl}/v1`, maxRetries: 0 });
  const edit = (body: object, options = {}) =>
    clientOf(key).images.edit(body as OpenAI.ImageEditParamsNonStreaming, options);
  const records = async () => (await api.request<RecordJson[]>('GET', '/v1/sd/text-to-image', { key })).body;
  const uploads = () => api.dataSource.manager.countBy(UploadedPicture, { ownerId: key.id });

  it('repaints what the mask has transparent, and keeps its pictures with the record', async () => {
    const image = await picture(300, 200);
    const mask = await picture(300, 200, true);
    const { data } = await edit({ image, mask, prompt: 'a star', n: 2, user: 'customer-42' });
    expect(data).toHaveLength(2);
    const [record] = await records();
    expect(record).toMatchObject({ strength: 1, width: 640, height: 416, num_generations: 2 });
    expect(record.user).toBe('customer-42');
    expect(new Set([record.image, record.mask]).size).toBe(2);
    expect(await uploads()).toBe(2);
  });

  it('repaints what the picture itself has transparent, if there is no mask', async () => {
    await edit({ image: [await picture(100, 100, true)], prompt: 'a star' });
    const [record] = await records();
    expect([record.mask, record.strength]).toEqual([record.image, 1]);
  });

  it('draws from the whole picture if nothing is transparent, in the size that is asked for', async () => {
    const size = '512x768' as '512x512';
    const { data } = await edit({
      image: await picture(100, 100),
      prompt: 'a star',
      size,
      response_format: 'b64_json',
    });
    const { format, width, height } = await sharp(Buffer.from(data![0].b64_json!, 'base64')).metadata();
    expect([format, width, height]).toEqual(['png', 512, 768]);
    expect(await records()).toMatchObject([{ mask: null, strength: 0.8 }]);
  });

  it('draws from the whole picture where hardly anything of it is transparent', async () => {
    const veiled = sharp({ create: { width: 64, height: 64, channels: 4, background: '#123456fe' } });
    await edit({
      image: await toFile(await veiled.png().toBuffer(), 'x.png', { type: 'image/png' }),
      prompt: 'a star',
    });
    expect(await records()).toMatchObject([{ mask: null, strength: 0.8 }]);
  });

  it('takes ten at once of one key, each in its turn', async () => {
    const image = await picture(64, 64);
    const all = await Promise.all(Array.from({ length: 10 }, () => edit({ image, prompt: 'a star' })));
    expect(all.flatMap(({ data }) => data ?? [])).toHaveLength(10);
  });

  it('is executed once for an Idempotency-Key', async () => {
    const again = async (prompt: string) =>
      edit(
        { image: await picture(100, 100), mask: await picture(100, 100, true), prompt },
        { headers: { 'Idempotency-Key': 'one' } },
      );
    const first = await again('a star');
    expect((await again('a star')).data).toEqual(first.data);
    await expect(again('a ring')).rejects.toMatchObject({ status: 422, code: 'IdempotencyKeyReused' });
    expect(await records()).toHaveLength(1);
  });

  it.each([
    ['no picture', async () => ({ prompt: 'x' }), 400, 'ValidationFailed', 'image'],
    ['no prompt', async () => ({ image: await picture(8, 8) }), 400, 'PromptMissing', 'prompt'],
    [
      'two pictures',
      async () => ({ image: [await picture(8, 8), await picture(8, 8)], prompt: 'x' }),
      400,
      'ValidationFailed',
      'image',
    ],
    [
      'an unknown field',
      async () => ({ image: await picture(8, 8), prompt: 'x', strength: '0.5' }),
      400,
      'ValidationFailed',
      'strength',
    ],
    [
      'an unknown size',
      async () => ({ image: await picture(8, 8), prompt: 'x', size: '255x256' }),
      400,
      'ValidationFailed',
      'size',
    ],
    [
      'a mask of another size',
      async () => ({ image: await picture(8, 8), mask: await picture(16, 16, true), prompt: 'x' }),
      400,
      'ValidationFailed',
      'mask',
    ],
    [
      'a mask with nothing transparent',
      async () => ({ image: await picture(8, 8), mask: await picture(8, 8), prompt: 'x' }),
      400,
      'ValidationFailed',
      'mask',
    ],
    ['too many', async () => ({ image: await picture(8, 8), prompt: 'x', n: 11 }), 400, 'ValidationFailed', 'n'],
    [
      'no picture in the file',
      async () => ({ image: await toFile(Buffer.from('no picture'), 'x.png'), prompt: 'x' }),
      422,
      'PictureUnreadable',
      null,
    ],
  ] as const)('refuses %s, and keeps nothing', async (_, body, status, code, param) => {
    await expect(edit(await body())).rejects.toMatchObject({ status, code, param });
    expect([await records(), await uploads()]).toEqual([[], 0]);
  });

  it('refuses what is neither a form nor JSON, and a form that breaks off', async () => {
    const send = (raw: string, type: string) =>
      api.request<{ error: { code: string } }>('POST', '/v1/images/edits', {
        key,
        raw,
        headers: { 'content-type': type },
      });
    const text = await send('prompt', 'text/plain');
    expect([text.status, text.body.error.code]).toEqual([415, 'UnsupportedMediaType']);
    const half = await send(
      '--x\r\nContent-Disposition: form-data; name="prompt"\r\n\r\na',
      'multipart/form-data; boundary=x',
    );
    expect([half.status, half.body.error.code]).toEqual([400, 'MalformedBody']);
  });
});
