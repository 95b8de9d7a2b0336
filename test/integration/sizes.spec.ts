import { startTestApi } from '../support/api';
import { makeFinetune, makePrompts, type ProblemJson } from '../support/factories';
import { ofSuite } from '../support/of-suite';
import { smallPicture } from '../support/small-picture';

interface RecordJson extends ProblemJson {
  id: string;
  aspect_ratio: unknown;
  width: number;
  height: number;
  strength: number;
  outpaint: unknown;
}

const api = ofSuite(() => startTestApi({ PUBLIC_URL: 'http://darkroom.example' }));
const key = ofSuite(() => api.createKey());
const post = <T = RecordJson>(path: string, body: unknown) => api.request<T>('POST', `/v1${path}`, { key, body });
const draw = (body: object) => post('/sd/text-to-image', { prompt: 'a star', ...body });
const shapeOf = ({ aspect_ratio, width, height }: RecordJson) => [aspect_ratio, width, height];

describe('The size of a picture', () => {
  it.each([
    [{}, ['square', 512, 512]],
    [{ aspect_ratio: 'landscape' }, ['landscape', 768, 512]],
    [{ aspect_ratio: '16:9' }, ['16:9', 672, 384]],
    [{ aspect_ratio: ['9:16'] }, ['9:16', 384, 672]],
    [{ aspect_ratio: '1:4' }, ['1:4', 256, 1024]],
    [{ width: 1024, height: 576 }, [null, 1024, 576]],
  ])('is that of %j', async (sent, shape) => {
    const { status, body } = await draw(sent);
    expect([status, shapeOf(body)]).toEqual([201, shape]);
    const found = await api.request<RecordJson>('GET', `/v1/sd/text-to-image/${body.id}`, { key });
    expect(found.body).toEqual(body);
  });

  it.each([
    [{ width: 512 }, { '/height': 'is needed beside the other edge' }],
    [
      { width: 512, height: 512, aspect_ratio: '1:1' },
      { '/aspect_ratio': 'cannot be sent with "width" and "height"; leave it or them out' },
    ],
    [
      { width: 500, height: 512 },
      { '/width': 'must be a multiple of 32 with this model, got 500; the nearest are 480 and 512' },
    ],
    [
      { width: 2048, height: 2048 },
      {
        '/width':
          'and "height" make 4194304 pixels, and this model draws at most 1048576; of this shape that is 1024 x 1024',
      },
    ],
    [
      { width: 128, height: 4096 },
      { '/width': /from 256 to 2048/, '/height': /from 256 to 2048/ },
    ],
    [{ aspect_ratio: '5:1' }, { '/aspect_ratio': /a ratio from 1:4 to 4:1 .* got "5:1"/ }],
    [{ aspect_ratio: '65:64' }, { '/aspect_ratio': /got "65:64"/ }],
  ] as [object, Record<string, string | RegExp>][])('of %j is refused', async (sent, problems) => {
    const { status, body } = await draw(sent);
    const told = Object.fromEntries((body.errors ?? []).map(({ pointer, message }) => [String(pointer), message]));
    const wanted: [string, unknown][] = Object.entries(problems).map(([pointer, message]) => [
      pointer,
      typeof message === 'string' ? message : (expect.stringMatching(message) as unknown),
    ]);
    expect([status, told]).toEqual([400, Object.fromEntries(wanted)]);
  });

  it('is that of a Prompt too, whose status has it', async () => {
    const { id } = await makeFinetune(api, key);
    const path = `/finetunes/${id}/prompts`;
    const { body } = await post<RecordJson[]>(path, [
      { prompt: 'a robot', aspect_ratio: '21:9' },
      { prompt: 'a robot', width: 256, height: 1024 },
    ]);
    expect(body.map(({ aspect_ratio }) => aspect_ratio)).toEqual(['21:9', null]);
    const statuses = body.map(({ id: each }) =>
      api.request<RecordJson>('GET', `/v1${path}/${each}/status`, { key }).then((reply) => reply.body),
    );
    expect((await Promise.all(statuses)).map(({ width, height }) => [width, height])).toEqual([
      [768, 320],
      [256, 1024],
    ]);
    const refused = await post(path, [{ prompt: 'a robot' }, { prompt: 'a robot', width: 256 }]);
    expect([refused.status, refused.body.errors]).toMatchObject([400, [{ pointer: '/1/height' }]]);
  });

  it('is that of Prompts that Styles make, which show what was sent', async () => {
    const { id } = await makeFinetune(api, key);
    const [prompt] = await makePrompts(api, key, id, [{ prompt: 'a robot' }]);
    const styles = [{ id: prompt.id, name: 'plain' }];
    const { body: collection } = await post('/prompts/collections', { name: 'plain', styles });
    const sent = [{ aspect_ratio: ['4:3'] }, { width: 640, height: 320 }];
    const { body } = await post<RecordJson[]>(
      `/finetunes/${id}/styles`,
      sent.map((each) => ({ id: collection.id, ...each })),
    );
    expect(body).toMatchObject(sent);
    expect(body.map((each) => 'width' in each)).toEqual([false, true]);
  });

  it('is bound by what GET /v1/models says', async () => {
    const { body } = await api.request<{ name: string }[]>('GET', '/v1/models', { key });
    expect(body.find(({ name }) => name === 'shapes')).toMatchObject({ size_multiple: 32, max_pixels: 1_048_576 });
  });
});

describe('A picture that is drawn around', () => {
  const upload = ofSuite(async () => {
    const { body } = await api.request<{ url: string }>('POST', '/v1/uploads', {
      key,
      raw: await smallPicture('#00f', 256, 256),
    });
    return { ...body, close: () => Promise.resolve() };
  });

  it.each([
    [true, { width: 768, height: 512 }],
    [{ x: 0, y: 256 }, { aspect_ratio: 'square' }],
  ])('is shown as it was sent: %j', async (outpaint, size) => {
    const { status, body } = await draw({ image: upload.url, outpaint, ...size });
    expect([status, body]).toMatchObject([201, { outpaint, strength: 1, ...size }]);
  });

  it.each([
    [{ outpaint: true, width: 512, height: 512 }, 422, '/outpaint'],
    [{ outpaint: true, image: 1 }, 400, '/outpaint'],
    [{ outpaint: true, image: 1, width: 256, height: 256 }, 422, '/image'],
    [{ outpaint: { x: 300, y: 0 }, image: 1, width: 512, height: 512 }, 422, '/image'],
    [{ outpaint: { x: -1, y: 0 }, image: 1, width: 512, height: 512 }, 400, '/outpaint/x'],
    [{ outpaint: 'left', image: 1, width: 512, height: 512 }, 400, '/outpaint'],
    [{ outpaint: true, image: 1, mask: 1, width: 512, height: 512 }, 400, '/outpaint'],
  ])('is refused as %j', async (sent, status, pointer) => {
    const url = upload.url;
    const body = { ...sent, ...('image' in sent && { image: url }), ...('mask' in sent && { mask: url }) };
    const refused = await draw(body);
    expect([refused.status, refused.body.errors?.[0].pointer]).toEqual([status, pointer]);
  });
});
