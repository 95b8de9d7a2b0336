import { request } from 'node:http';
import sharp from 'sharp';
import { UploadedPicture } from '@app/domain';
import { startTestApi } from '../support/api';
import { ofSuite, ofTest } from '../support/of-suite';

interface RecordJson {
  image: string | null;
  mask: string | null;
  strength: number | null;
  prompt: string;
}

interface AnswerJson {
  data: { b64_json: string }[];
  error: { code: string; param: string | null; message: string };
}

const png = async (edge: number, isTransparent = false) => {
  const background = { r: 200, g: 30, b: 30, alpha: isTransparent ? 0 : 1 };
  return sharp({ create: { width: edge, height: edge, channels: 4, background } })
    .png()
    .toBuffer();
};
const dataUrl = async (edge: number, isTransparent = false) =>
  `data:image/png;base64,${(await png(edge, isTransparent)).toString('base64')}`;

describe('JSON of POST /v1/images/edits', () => {
  const api = ofSuite(() => startTestApi({ PUBLIC_URL: 'https://darkroom.example' }));
  const key = ofTest(() => api.createKey({ sandbox: true }));
  const edit = (body: object, headers = {}) =>
    api.request<AnswerJson>('POST', '/v1/images/edits', { key, body, headers });
  const records = async () => (await api.request<RecordJson[]>('GET', '/v1/sd/text-to-image', { key })).body;
  const uploads = () => api.dataSource.manager.countBy(UploadedPicture, { ownerId: key.id });
  const upload = async () => {
    const headers = { 'content-type': 'image/png' };
    const reply = await api.request<{ id: string; url: string }>('POST', '/v1/uploads', {
      ...{ key, raw: await png(64), headers },
    });
    return reply.body;
  };

  it('has pictures as data URLs, which are kept with the record', async () => {
    const { status, body } = await edit({
      prompt: 'a star',
      images: [{ image_url: await dataUrl(64) }],
      mask: { image_url: await dataUrl(64, true) },
    });
    expect([status, body.data.length]).toEqual([200, 1]);
    const [record] = await records();
    expect([record.strength, record.image === record.mask]).toEqual([1, false]);
    expect(await uploads()).toBe(2);
  });

  it('names pictures by the id of an upload, and by a URL', async () => {
    const { id, url } = await upload();
    for (const image of [{ file_id: id }, { image_url: url }])
      expect((await edit({ prompt: 'a star', images: [image] })).status).toBe(200);
    expect((await records()).map(({ image }) => image)).toEqual([url, url]);
  });

  it('leaves texts as they are, and takes a slash with a backslash', async () => {
    const prompt = 'a "data:image/png;base64,AA" on a \\"data:image/ sign';
    const raw = JSON.stringify({ prompt, images: [{ image_url: await dataUrl(64) }] }).replaceAll(
      /"data:image\/png;base64,[^"\\]{9,}"/g,
      (text) => text.replaceAll('/', '\\/'),
    );
    const headers = { 'content-type': 'application/json' };
    expect((await api.request('POST', '/v1/images/edits', { key, raw, headers })).status).toBe(200);
    expect((await records())[0].prompt).toBe(prompt);
  });

  it('may come in pieces of any size', async () => {
    const text = Buffer.from(JSON.stringify({ prompt: 'a star', images: [{ image_url: await dataUrl(16) }] }));
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { authorization: `Bearer ${key.token}`, 'content-type': 'application/json' };
      const sent = request(`${api.baseUrl}/v1/images/edits`, { method: 'POST', headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).on('error', reject);
      const next = (at: number): void => {
        if (at >= text.length) return void sent.end();
        sent.write(text.subarray(at, at + 7), () => setImmediate(next, at + 7));
      };
      next(0);
    });
    expect(status).toBe(200);
  });

  it('is executed once for an Idempotency-Key', async () => {
    const again = async (edge: number) =>
      edit({ prompt: 'a star', images: [{ image_url: await dataUrl(edge) }] }, { 'idempotency-key': 'one' });
    const first = await again(64);
    expect((await again(64)).body).toEqual(first.body);
    expect((await again(32)).body.error.code).toBe('IdempotencyKeyReused');
    expect(await records()).toHaveLength(1);
  });

  const picture = { file_id: 'aaaaaaaaaaaaaaaaaaaaaaaa' };
  it.each([
    ['no pictures', {}, 400, 'images'],
    ['an empty list', { images: [] }, 400, 'images'],
    ['an id that there is not', { images: [picture] }, 404, null],
    ['nothing of a picture', { images: [{}] }, 400, 'images/0'],
    ['both of a picture', { images: [{ ...picture, image_url: 'https://example.com/a.png' }] }, 400, 'images/0'],
    ['another scheme', { images: [{ image_url: 'ftp://example.com/a.png' }] }, 400, 'images/0/image_url'],
    ['a place without a picture', { images: [{ image_url: 'data:0' }] }, 400, 'images/0/image_url'],
    ['a picture that is none', { images: [{ image_url: 'data:image/png;base64,AAAA' }] }, 422, null],
    ['no base64', { images: [{ image_url: 'data:image/svg+xml,<svg>' }] }, 400, null],
    ['an unknown field', { images: [picture], steps: 4 }, 400, 'steps'],
    ['a text as a number', { images: [picture], n: '2' }, 400, 'n'],
  ] as const)('refuses %s, and keeps nothing', async (_, body, status, param) => {
    const reply = await edit({ prompt: 'a star', ...body });
    expect([reply.status, reply.body.error.param]).toEqual([status, param]);
    expect([await records(), await uploads()]).toEqual([[], 0]);
  });

  it('refuses what stands in the place of a picture from a caller, however it is written', async () => {
    const image = { image_url: await dataUrl(64) };
    for (const body of [
      { prompt: 'x', user: image.image_url, images: [{ image_url: 'data:0' }] },
      { prompt: 'data:0', images: [image] },
      { prompt: 'x', images: [image], mask: { image_url: 'data:0' } },
    ]) {
      const raw = JSON.stringify(body).replace('"data:0"', String.raw`"\u0064ata:0"`);
      const headers = { 'content-type': 'application/json' };
      const reply = await api.request<AnswerJson>('POST', '/v1/images/edits', { key, raw, headers });
      expect([reply.status, reply.body.error.message]).toEqual([
        400,
        expect.stringContaining('another text than "data:" and a digit'),
      ]);
    }
    expect([await records(), await uploads()]).toEqual([[], 0]);
  });

  it('is told where in it a picture is that cannot be drawn from', async () => {
    const { id } = await upload();
    const gone = { image_url: 'https://darkroom.example/images/aaaaaaaaaaaaaaaaaaaaaaaa.png' };
    const unknown = await edit({ prompt: 'x', images: [gone] });
    expect([unknown.status, unknown.body.error.param]).toEqual([422, 'images/0/image_url']);
    expect(unknown.body.error.message).toContain('"/images/0/image_url"');
    const masked = await edit({
      prompt: 'x',
      images: [{ file_id: id }],
      mask: { image_url: 'http://127.0.0.1/a.png' },
    });
    expect([masked.status, masked.body.error.param]).toEqual([422, 'mask/image_url']);
    expect(masked.body.error.message).toContain('"/mask/image_url"');
  });

  it('refuses a picture in another field, several of a model that looks at none, and broken JSON', async () => {
    const url = await dataUrl(64);
    const images = [{ image_url: url }];
    expect((await edit({ prompt: url, images })).body.error).toMatchObject({ code: 'ValidationFailed' });
    expect((await edit({ prompt: 'x', images: [...images, ...images] })).body.error.param).toBe('images');
    const headers = { 'content-type': 'application/json' };
    for (const raw of ['{', '[]', `{"prompt": "${url.slice(0, 60)}`]) {
      const reply = await api.request<AnswerJson>('POST', '/v1/images/edits', { key, raw, headers });
      expect([raw, reply.status]).toEqual([raw, 400]);
    }
    expect([await records(), await uploads()]).toEqual([[], 0]);
  });
});
