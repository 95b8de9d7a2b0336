import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTestApi } from '../support/api';
import { drawTask, makePrompts, storedKeys } from '../support/factories';
import { startReceiver } from '../support/receiver';
import { allRows, makeWorld, type World } from '../support/world';
import { ofSuite } from '../support/of-suite';

const weights = readFileSync(join(__dirname, '..', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors'));

/** Usage stays counted after the pictures are deleted: about one row per caller, not per picture. */
const kept = ['daily_usage', 'fair_shares', 'rate_buckets', 'storage_use'];

describe('Deleting', () => {
  const receiver = ofSuite(startReceiver);
  const api = ofSuite(startTestApi);
  const key = ofSuite(() => api.createKey());
  let world: World;
  let before: unknown;

  beforeAll(async () => {
    // Nothing of this other world may be deleted.
    await makeWorld(api, await api.createKey(), receiver);
  });

  const everything = async () => {
    const rows = Object.entries(await allRows(api)).filter(([table]) => !kept.includes(table));
    return { rows, files: await storedKeys(api) };
  };
  const call = <T = Record<string, unknown>>(method: string, path: string) => api.request<T>(method, path, { key });
  const remove = async (path: string, confirmation: string) => {
    const reply = await call('DELETE', path);
    expect([reply.status, reply.body]).toEqual([200, { delete: `${confirmation} has been deleted successfully.` }]);
    expect((await call('GET', path)).status).toBe(404);
    expect((await call('DELETE', path)).status).toBe(404);
  };
  /** URLs of pictures in a response, which need no key while their record exists. */
  const pictures = async (path: string): Promise<string[]> => {
    const { body } = await call<{ images?: string[]; thumbnail?: string }>('GET', path);
    const urls = [...(body.images ?? []), ...(body.thumbnail ? [body.thumbnail] : [])];
    return urls.map((url) => new URL(url).pathname);
  };
  const statuses = (paths: readonly string[]) =>
    Promise.all(paths.map(async (path) => (await fetch(`${api.baseUrl}${path}`)).status));

  const grow = async () => {
    const made = await makeWorld(api, key, receiver);
    const upload = { raw: weights, headers: { 'content-type': 'application/octet-stream' } };
    const reply = await api.request('PUT', `/v1/finetunes/${made.finetune}/weights`, { key, ...upload });
    expect(reply.status).toBe(200);
    // Keys are revoked, never deleted, and this one is not the caller's.
    await api.dataSource.query('DELETE FROM api_keys WHERE id = $1', [made.apiKey]);
    return made;
  };

  beforeEach(async () => {
    before = await everything();
    world = await grow();
  });

  it('everything a caller has made leaves no row and no file', async () => {
    const { finetune, collection, generation, prompt, style, upload } = world;
    const styles = `/v1/prompts/collections/${collection}`;
    const urls = [
      ...(await pictures(`/v1/sd/text-to-image/${generation}`)),
      ...(await pictures(`/v1/finetunes/${finetune}/prompts/${prompt}`)),
      ...(await pictures(`${styles}/styles/${style}`)),
      ...(await pictures(styles)),
    ];
    // Of each its picture, and of the Generation its thumbnail.
    expect(urls).toHaveLength(5);
    expect(await statuses(urls)).toEqual(urls.map(() => 200));
    await remove(`/v1/sd/text-to-image/${generation}`, `Generation ${generation}`);
    await remove(`/v1/finetunes/${finetune}`, `Fine-Tune ${finetune}`);
    await remove(styles, `Collection ${collection}`);
    await remove(`/v1/uploads/${upload}`, `Upload ${upload}`);
    expect(await statuses(urls)).toEqual(urls.map(() => 404));
    expect(await everything()).toEqual(before);
    const stored = 'SELECT picture_bytes, weight_bytes FROM storage_use WHERE owner_id = $1';
    expect(await api.dataSource.query(stored, [key.id])).toEqual([{ picture_bytes: '0', weight_bytes: '0' }]);
  });

  it('waiting tasks leaves nothing, and nothing appears later', async () => {
    const { finetune, collection, generation } = world;
    const [drawn, waiting] = await makePrompts(api, key, finetune, [{ prompt: 'a robot' }, { prompt: 'the robot' }]);
    await drawTask(api, drawn.id);
    const post = (body: object) => api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body });
    const { body: queued } = await post({ prompt: 'a star', webhook: `${receiver.url}/never` });
    await remove(`/v1/sd/text-to-image/${queued.id}`, `Generation ${queued.id}`);
    await remove(`/v1/finetunes/${finetune}/prompts/${waiting.id}`, `Prompt ${waiting.id}`);
    await remove(`/v1/finetunes/${finetune}`, `Fine-Tune ${finetune}`);
    await remove(`/v1/prompts/collections/${collection}`, `Collection ${collection}`);
    await remove(`/v1/sd/text-to-image/${generation}`, `Generation ${generation}`);
    await remove(`/v1/uploads/${world.upload}`, `Upload ${world.upload}`);
    await expect(drawTask(api, queued.id)).rejects.toThrow('is not queued');
    expect(await everything()).toEqual(before);
    expect(receiver.received.map(({ path }) => path)).not.toContain('/never');
  });
});
