import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { bundledDefaults } from '../support/bundled-defaults';
import type { PromptJson } from '../support/factories';
import { drawTask, makeFinetune, makePrompts, storedKeys } from '../support/factories';

interface Resource {
  id: string;
  name: string;
  thumbnail: string | null;
}

describe('a Collection from Prompts of one Fine-Tune, applied to another', () => {
  let api: TestApi;
  let key: TestKey;

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
  });

  afterAll(() => api.close());

  const call = <T>(method: string, path: string, body?: unknown) => api.request<T>(method, `/v1${path}`, { key, body });
  const pictureStatus = async (url: string | null) => (await fetch(`${api.baseUrl}${new URL(url!).pathname}`)).status;
  const rowCounts = () =>
    api.dataSource.query<object[]>(
      `SELECT (SELECT count(*) FROM finetunes) AS finetunes, (SELECT count(*) FROM finetune_prompts) AS prompts,
        (SELECT count(*) FROM image_tasks) AS tasks, (SELECT count(*) FROM images) AS images,
        (SELECT count(*) FROM collections) AS collections, (SELECT count(*) FROM styles) AS styles`,
    );

  it('keeps its thumbnails when Prompt and Fine-Tune are deleted, and leaves nothing when it is deleted itself', async () => {
    const before = { rows: await rowCounts(), files: await storedKeys(api) };
    const source = await makeFinetune(api, key, { name: 'robot', token: 'zwx' });
    const prompts = await makePrompts(api, key, source.id, [
      { prompt: 'a robot in the rain', negative_prompt: 'sun', cfg: 9, steps: 12 },
      { prompt: 'a zwx robot at the sea' },
    ]);
    await drawTask(api, prompts[0].id);
    const styles = prompts.map(({ id }, index) => ({ id, name: `style ${index}` }));
    const collection = (await call<Resource>('POST', '/prompts/collections', { name: 'Trip', styles })).body;
    expect(await pictureStatus(collection.thumbnail)).toBe(200);

    // The second picture is drawn after the Style was made.
    await drawTask(api, prompts[1].id);
    expect((await call('DELETE', `/finetunes/${source.id}/prompts/${prompts[1].id}`)).status).toBe(200);
    expect((await call('DELETE', `/finetunes/${source.id}`)).status).toBe(200);
    const listed = (await call<Resource[]>('GET', `/prompts/collections/${collection.id}/styles`)).body;
    expect(await Promise.all(listed.map(({ thumbnail }) => pictureStatus(thumbnail)))).toEqual([200, 200]);

    const target = await makeFinetune(api, key, { name: 'cat', token: 'qrs' });
    const applied = await call<PromptJson[]>('POST', `/finetunes/${target.id}/styles`, [{ id: collection.id }]);
    expect(applied.status).toBe(201);
    const made = await Promise.all(
      applied.body.map(({ id }) => call<PromptJson>('GET', `/finetunes/${target.id}/prompts/${id}`)),
    );
    expect(made.map(({ body }) => [body.prompt, body.negative_prompt, body.cfg, body.steps])).toEqual([
      ['a qrs cat in the rain', 'sun', 9, 12],
      ['a qrs cat at the sea', null, bundledDefaults.cfg, bundledDefaults.steps],
    ]);

    expect((await call('DELETE', `/prompts/collections/${collection.id}`)).status).toBe(200);
    expect(await pictureStatus(collection.thumbnail)).toBe(404);
    expect((await call('DELETE', `/finetunes/${target.id}`)).status).toBe(200);
    expect({ rows: await rowCounts(), files: await storedKeys(api) }).toEqual(before);
  });
});
