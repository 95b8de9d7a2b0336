import { type Config, loadConfig } from '@app/config';
import { PresignedUrls } from '@app/storage';
import { startTestApi, type TestApi, type TestKey } from '../support/api';
import { describeOnce } from '../support/back-ends';
import type { ProblemJson } from '../support/factories';
import { type S3Server, startS3 } from '../support/s3-server';
import { until } from '../support/until';

interface Record {
  id: string;
  status: string;
  images: string[];
  thumbnail: string | null;
}

describeOnce('With PICTURE_URLS=presigned', () => {
  let store: S3Server;
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    store = await startS3();
    const env = { STORAGE: 's3', PICTURE_URLS: 'presigned', PICTURE_URL_SECONDS: '600' };
    api = await startTestApi({ ...store.env, ...env });
    key = await api.createKey({ sandbox: true });
  });
  afterAll(async () => {
    await api.close();
    await store.close();
  });

  const drawn = async (body: object): Promise<Record> => {
    const made = await api.request<Record>('POST', '/v1/sd/text-to-image', { key, body });
    expect(made.status).toBe(201);
    return until(async () => {
      const { body: found } = await api.request<Record>('GET', `/v1/sd/text-to-image/${made.body.id}`, { key });
      return ['succeeded', 'failed'].includes(found.status) && found;
    }, 'it is drawn');
  };

  it('records lead to the store, which needs no key, and to nothing else in it', async () => {
    const { id, images, thumbnail } = await drawn({ prompt: 'a star', num_generations: 2, output_format: 'jpeg' });
    expect(images).toHaveLength(2);
    for (const [url, type] of [...images.map((each) => [each, 'image/jpeg']), [thumbnail!, 'image/webp']]) {
      expect(url.startsWith(`${store.env.S3_ENDPOINT}/`)).toBe(true);
      const answer = await fetch(url);
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, type]);
      expect(answer.headers.get('cache-control')).toBe('private, max-age=600, immutable');
    }
    const [first, second] = images.map((url) => new URL(url));
    first.pathname = second.pathname;
    expect((await fetch(first)).status).toBe(403);

    const { body: list } = await api.request<Record[]>('GET', '/v1/sd/text-to-image', { key });
    const listed = list.find((each) => each.id === id)!;
    expect((await fetch(listed.images[1])).status).toBe(200);
    await api.request('DELETE', `/v1/sd/text-to-image/${id}`, { key });
    expect((await fetch(images[0])).status).toBe(404);
  });

  it('a URL ends after PICTURE_URL_SECONDS', async () => {
    const { images } = await drawn({ prompt: 'a star' });
    const now = Date.now();
    const clock = jest.spyOn(Date, 'now').mockReturnValue(now + 599_000);
    expect((await fetch(images[0])).status).toBe(200);
    clock.mockReturnValue(now + 601_000);
    expect((await fetch(images[0])).status).toBe(403);
    clock.mockRestore();
  });

  it('one of them, however old, names the picture to draw from', async () => {
    const { images } = await drawn({ prompt: 'a star' });
    const next = await drawn({ prompt: 'a star', image: images[0].replace(/Signature=\w+/, 'Signature=0') });
    expect(next.status).toBe('succeeded');
    const other = await api.createKey();
    const body = { prompt: 'a star', image: images[0] };
    const refused = await api.request<ProblemJson>('POST', '/v1/sd/text-to-image', { key: other, body });
    // To another account it is a URL like any other.
    expect([refused.status, refused.body.errors?.[0]]).toMatchObject([422, { pointer: '/image' }]);
  });

  it('agents are shown pictures all the same', async () => {
    const { id } = await drawn({ prompt: 'a star' });
    const headers = { accept: 'application/json, text/event-stream', authorization: `Bearer ${key.token}` };
    const params = { name: 'get_drawing', arguments: { id } };
    const answer = await fetch(`${api.baseUrl}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    });
    expect(await answer.text()).toContain('"type":"image"');
  });

  it('the service sends its pictures by their own URLs as before', async () => {
    const { images } = await drawn({ prompt: 'a star' });
    const file = new URL(images[0]).searchParams.get('x-darkroom-picture')!;
    expect((await fetch(`${api.baseUrl}/images/${file}`)).status).toBe(200);
  });
});

describeOnce('A presigned URL', () => {
  const s3 = { region: 'us-east-1', bucket: 'pictures', accessKeyId: 'a', secretAccessKey: 'b', forcePathStyle: false };
  const picture = { storageKey: 'generations/x/0.png', contentType: 'image/png', file: 't.png' };

  it.each([
    [{}, 'https://pictures.s3.us-east-1.amazonaws.com/generations/x/0.png?'],
    [{ region: 'eu-west-3' }, 'https://pictures.s3.eu-west-3.amazonaws.com/generations/x/0.png?'],
    [{ endpoint: 'http://minio:9000', forcePathStyle: true }, 'http://minio:9000/pictures/generations/x/0.png?'],
    [{ endpoint: 'https://store.example' }, 'https://pictures.store.example/generations/x/0.png?'],
    [
      { endpoint: 'http://minio:9000', publicEndpoint: 'https://cdn.example', forcePathStyle: true },
      'https://cdn.example/pictures/generations/x/0.png?',
    ],
  ])('with %j begins with %s', async (changes, beginning) => {
    const url = await new PresignedUrls({ ...s3, ...changes }, 60, 'x-picture').of(picture);
    expect(url.slice(0, beginning.length)).toBe(beginning);
  });

  it('needs STORAGE=s3', () => {
    const config = (): Config => loadConfig({ PICTURE_URLS: 'presigned' });
    expect(config).toThrow('PICTURE_URLS can be presigned only when STORAGE is s3.');
  });
});
