import OpenAI from 'openai';
import sharp from 'sharp';
import { progressChannel } from '@app/tasks';
import { startTestApi, type TestKey } from '../support/api';
import { drawTask, failTask } from '../support/factories';
import { until } from '../support/until';
import { ofSuite, ofTest } from '../support/of-suite';

interface RecordJson {
  id: string;
  status: string;
  steps: number;
  model: string;
}

/** OpenAI's official client, and what code of today sends with it. */
describe('the options of OpenAI', () => {
  const api = ofSuite(() => startTestApi());
  const sandbox = ofSuite(() => api.createKey({ sandbox: true, rateLimitPerMinute: 0 }));
  const key = ofTest(() => api.createKey({ rateLimitPerMinute: 0 }));
  const clientOf = ({ token }: TestKey) => new OpenAI({ apiKey: token, baseURL: `${api.baseUrl}/v1`, maxRetries: 0 });
  const draw = (more: object = {}) =>
    clientOf(sandbox)
      .images.generate({
        prompt: 'a red circle',
        model: 'gpt-image-2',
        ...more,
      } as OpenAI.ImageGenerateParamsNonStreaming)
      .withResponse();
  const recordOf = async (response: Response, owner = sandbox) => {
    const id = response.headers.get('x-generation-id');
    return (await api.request<RecordJson>('GET', `/v1/sd/text-to-image/${id}`, { key: owner })).body;
  };

  it('has the pictures themselves beside their URLs, and all that an answer says', async () => {
    const { data, response } = await draw({ safety_identifier: 'customer-42', size: '512x768', n: 10 });
    expect(data).toMatchObject({
      ...{ size: '512x768', quality: 'high', background: 'opaque', output_format: 'png' },
      safety_identifier: 'customer-42',
      usage: {
        ...{ input_tokens: 3, input_tokens_details: { image_tokens: 0, text_tokens: 3 } },
        ...{ output_tokens: 0, total_tokens: 3 },
      },
    });
    expect(data.data).toHaveLength(10);
    for (const { url, b64_json: text } of data.data!) {
      const file = await fetch(`${api.baseUrl}${new URL(url!).pathname}`);
      expect(Buffer.from(text!, 'base64').equals(Buffer.from(await file.arrayBuffer()))).toBe(true);
    }
    expect(response.headers.get('x-darkroom-model')).toMatch(/^(?:shapes@|sandbox)/);
    expect((await recordOf(response)).model).toBe('sd1.5');
  });

  it.each([
    ['low', 13, 'low'],
    ['medium', 19, 'medium'],
    ['high', 25, 'high'],
    ['xhigh', 38, 'xhigh'],
    ['max', 50, 'max'],
    ['auto', 25, 'high'],
    ['standard', 25, 'high'],
    ['hd', 38, 'xhigh'],
    [null, 25, 'high'],
  ])('takes %s for %i steps', async (quality, steps, told) => {
    const { data, response } = await draw({ quality });
    expect([(await recordOf(response)).steps, data.quality]).toEqual([steps, told]);
  });

  it.each([
    [
      '1001x1000',
      'is not drawn: "width" must be a multiple of 32 with this model, got 1001; the nearest are 992 and 1024.',
    ],
    [
      '2048x2048',
      'is not drawn: "width" and "height" make 4194304 pixels, and this model draws at most 1048576; of this shape that is 1024 x 1024.',
    ],
    ['64x512', 'must be of edges from 256 to 2048, got 64x512.'],
  ])('says why %s is not drawn', async (size, sentence) => {
    await expect(draw({ size })).rejects.toMatchObject({
      status: 400,
      param: 'size',
      error: { message: `"/size" ${sentence}` },
    });
  });

  it('has a JPEG or WebP as small as it is asked for', async () => {
    const sizes: number[] = [];
    for (const compression of [100, 50, 0]) {
      const { data } = await draw({ output_format: 'jpeg', output_compression: compression });
      const file = Buffer.from(data.data![0].b64_json!, 'base64');
      expect([data.output_format, (await sharp(file).metadata()).format]).toEqual(['jpeg', 'jpeg']);
      sizes.push(file.length);
    }
    expect(sizes).toEqual([...sizes].sort((a, b) => b - a));
    expect(new Set(sizes).size).toBe(3);
  });

  it.each([
    { background: 'opaque', moderation: 'low', complexity: 'high', style: 'vivid', output_compression: 100 },
    { svg: null, frame_count: null, n: null, size: null, stream: false, safety_identifier: '', user: 'somebody' },
  ])('takes %j', async (more) => {
    expect((await draw(more)).data.data).toHaveLength(1);
  });

  it.each([
    ['background', { background: 'transparent' }],
    ['output_format', { output_format: 'gif' }],
    ['output_format', { output_format: 'svg' }],
    ['svg', { svg: { model: 'x' } }],
    ['frame_count', { frame_count: 4 }],
    ['markup', { markup: 'x' }],
    ['output_compression', { output_compression: 50 }],
    ['partial_images', { stream: true, partial_images: 4 }],
    ['size', { size: '1000x1000' }],
  ])('refuses %s in %j with a sentence', async (param, more) => {
    await expect(draw(more)).rejects.toMatchObject({ status: 400, code: 'ValidationFailed', param });
  });

  describe('as a stream', () => {
    const stream = (more: object = {}) =>
      clientOf(key).images.generate({ prompt: 'a star', model: 'shapes', stream: true, ...more });
    const queued = () =>
      until(async () => {
        const { body } = await api.request<RecordJson[]>('GET', '/v1/sd/text-to-image', { key: key });
        return body.find(({ status }) => status === 'queued')?.id;
      }, 'it is queued');
    const step = (id: string, done: number) =>
      api.dataSource.query('SELECT pg_notify($1, $2)', [
        progressChannel,
        JSON.stringify({ id, attempt: 1, step: done, total: 8, preview: `step${done}` }),
      ]);

    it('has pictures of steps, evenly spread, and then each picture', async () => {
      const events: OpenAI.ImageGenStreamEvent[] = [];
      const followed = (async () => {
        for await (const event of await stream({ partial_images: 3, n: 2, quality: 'max', user: 'somebody' }))
          events.push(event);
      })();
      const id = await queued();
      for (let done = 1; done <= 8; done++) {
        await step(id, done);
        if (done % 2 === 0 && done < 8)
          await until(() => Promise.resolve(events.length === done / 2), `event ${done / 2}`);
      }
      await drawTask(api, id);
      await followed;
      const facts = { size: '512x512', quality: 'max', background: 'opaque' };
      expect(events.slice(0, 3)).toEqual(
        [2, 4, 6].map((done, index) => ({
          ...{ type: 'image_generation.partial_image', b64_json: `step${done}`, partial_image_index: index },
          ...{ ...facts, output_format: 'jpeg', created_at: expect.any(Number) as number },
        })),
      );
      expect(events.slice(3)).toHaveLength(2);
      for (const event of events.slice(3))
        expect(event).toMatchObject({
          ...{ type: 'image_generation.completed', b64_json: expect.any(String) as string, ...facts, size: '64x64' },
          ...{ output_format: 'png', safety_identifier: 'somebody', usage: { output_tokens: 0 } },
        });
    });

    it('ends with an error that the client throws', async () => {
      const followed = (async () => {
        for await (const event of await stream()) throw new Error(`got ${event.type}`);
      })();
      const failed = expect(followed).rejects.toMatchObject({
        code: 'GenerationFailed',
        error: { message: 'No paint.' },
      });
      await failTask(api, await queued(), 'No paint.');
      await failed;
    });
  });

  describe('models', () => {
    it('are listed and read as OpenAI has them', async () => {
      const listed = await clientOf(key).models.list();
      expect(listed.data).toEqual([
        expect.objectContaining({
          id: 'shapes',
          object: 'model',
          owned_by: 'darkroom',
          created: expect.any(Number) as number,
        }),
      ]);
      expect(await clientOf(key).models.retrieve('gpt-image-2')).toMatchObject({ id: 'gpt-image-2', name: 'shapes' });
      await expect(clientOf(key).models.retrieve('imagen')).rejects.toMatchObject({
        ...{ status: 404, code: 'ModelNotFound', type: 'invalid_request_error' },
        error: { message: expect.stringContaining('shapes') as string },
      });
    });

    it('are an array for others, whose errors are ours', async () => {
      const { body } = await api.request<object[]>('GET', '/v1/models', { key: key });
      expect(body).toEqual([expect.objectContaining({ name: 'shapes' })]);
      const missing = await api.request('GET', '/v1/models/imagen', { key: key });
      expect([missing.status, missing.body]).toEqual([404, expect.objectContaining({ code: 'ModelNotFound' })]);
    });
  });
});
