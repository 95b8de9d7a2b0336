import { request as plainRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import { newIdentifier } from '@app/domain';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import type { ProblemJson } from '../support/factories';
import { makeFinetune } from '../support/factories';

describe('Messages of errors', () => {
  let api: TestApi;
  let key: TestKey;
  let finetuneId: string;

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
    finetuneId = (await makeFinetune(api, key)).id;
  });

  afterAll(() => api.close());

  const refusal = async (method: string, path: string, options = {}) =>
    api.request<ProblemJson>(method, path, { key, ...options });

  it.each([
    [
      'a zip archive',
      'PK\u0003\u0004 and so on',
      'This is not a safetensors file: it is a zip archive, as .pt, .pth, .ckpt and .bin files of PyTorch are.',
    ],
    ['a picture', Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), 'This is not a safetensors file: it is a PNG picture.'],
    ['a text', 'no weights at all', 'This is not a safetensors file.'],
    ['a byte', 'x', 'This is not a safetensors file.'],
  ])('say what %s is that is uploaded as weights', async (_, raw, detail) => {
    const headers = { 'content-type': 'application/octet-stream' };
    const { status, body } = await refusal('PUT', `/v1/finetunes/${finetuneId}/weights`, { raw, headers });
    expect([status, body.code, body.detail]).toEqual([422, 'WeightsMalformed', detail]);
  });

  it('name the id that is no Style, Collection or Prompt', async () => {
    const id = newIdentifier();
    const styles = await refusal('POST', `/v1/finetunes/${finetuneId}/styles`, { body: [{ id }] });
    expect(styles.body.detail).toBe(`"/0/id" is no Style or Collection of yours, and no public one: "${id}".`);
    const prompts = await refusal('POST', '/v1/prompts/collections', {
      body: { name: 'x', styles: [{ id, name: 'x' }] },
    });
    expect(prompts.body.detail).toBe(`"/styles/0/id" is no Prompt of yours: "${id}".`);
  });

  it('name the model that is not installed', async () => {
    const { body } = await refusal('POST', '/v1/sd/text-to-image', { body: { prompt: 'x', model: 'sdxl' } });
    expect(body.errors).toEqual([{ pointer: '/model', message: 'names "sdxl", which is not installed' }]);
    expect(body.detail).toMatch(/^The model "sdxl" is not installed/);
  });

  it('say how a key is sent', async () => {
    const { body } = await api.request<ProblemJson>('GET', '/v1/models');
    const detail = 'A valid API key is needed: send the header Authorization: Bearer <key>.';
    expect([body.code, body.detail]).toEqual(['Unauthorized', detail]);
  });

  it('write Fine-Tune as the documentation does', async () => {
    const { body } = await refusal('GET', `/v1/finetunes/${newIdentifier()}`);
    expect([body.code, body.detail]).toEqual(['FineTuneNotFound', 'There is no Fine-Tune with this id.']);
  });

  it.each([
    ['PUT', '/v1/sd/text-to-image', 'GET, HEAD, POST', 'PUT is not allowed here; GET, HEAD and POST are.'],
    ['DELETE', '/v1/models', 'GET, HEAD', 'DELETE is not allowed here; GET and HEAD are.'],
    ['GET', '/v1/finetunes/x/styles', 'POST', 'GET is not allowed here; only POST is.'],
  ])('say in plain words what is allowed instead of %s %s', async (method, path, allow, detail) => {
    const { status, headers, body } = await refusal(method, path);
    expect([status, headers.get('allow'), body.detail]).toEqual([405, allow, detail]);
  });

  it('say what is wrong with a path whose escapes are no UTF-8', async () => {
    const { port } = new URL(api.baseUrl);
    const [status, body] = await new Promise<[number | undefined, string]>((resolve, reject) => {
      const sent = plainRequest({ port, path: '/v1/sd/text-to-image/%ff', host: '127.0.0.1' }, (response) => {
        text(response).then((all) => resolve([response.statusCode, all]), reject);
      });
      sent.on('error', reject).end();
    });
    const { code, detail } = JSON.parse(body) as ProblemJson;
    expect([status, code]).toEqual([400, 'BadRequest']);
    expect(detail).toMatch(/each "%" must begin an escape of UTF-8/);
  });

  describe('about webhooks', () => {
    const webhook = async (url: string) =>
      refusal('POST', '/v1/sd/text-to-image', { body: { prompt: 'x', webhook: url } });

    it.each(['https://bücher.example/hook', 'https://例え.テスト:8443/x?y=1', 'http://xn--bcher-kva.example/'])(
      'accepts the host of %s',
      async (url) => expect((await webhook(url)).status).toBe(201),
    );

    it.each([
      ['https://a.example:0/', 'must not have the port 0'],
      ['https://a.example/bücher', 'must have "ü" percent-encoded, as a URL has it'],
      ['https://a.example/%zz', 'must have "%" percent-encoded, as a URL has it'],
      ['https://a b.example/', 'must be an absolute http or https URL'],
      ['https:///hook', 'must be an absolute http or https URL'],
      ['https://a.example:99999/', 'must be an absolute http or https URL, with a port up to 65535 if any'],
    ])('say what is wrong with %s', async (url, message) => {
      const { status, body } = await webhook(url);
      expect([status, body.errors]).toEqual([400, [{ pointer: '/webhook', message }]]);
    });
  });
});
