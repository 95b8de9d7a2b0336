import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { startTestApi } from '../support/api';
import { drawTask, failTask, makeFinetune, makePrompts } from '../support/factories';
import { ofSuite } from '../support/of-suite';

interface Resource {
  id: string;
  thumbnail: string | null;
}

describe('thumbnails of Styles', () => {
  const api = ofSuite(startTestApi);
  const key = ofSuite(() => api.createKey());
  let finetune: string;

  beforeAll(async () => {
    finetune = (await makeFinetune(api, key)).id;
  });

  const call = <T = Resource>(method: string, path: string, body?: unknown) =>
    api.request<T>(method, `/v1${path}`, { key, body });
  const makePrompt = async (): Promise<string> => (await makePrompts(api, key, finetune))[0].id;
  const makeCollection = async (promptIds: readonly string[]): Promise<string> => {
    const styles = promptIds.map((id) => ({ id, name: 'style' }));
    return (await call('POST', '/prompts/collections', { name: 'Trip', styles })).body.id;
  };
  const stylesOf = async (collection: string) =>
    (await call<Resource[]>('GET', `/prompts/collections/${collection}/styles`)).body;
  const thumbnailsOf = async (collection: string) => (await stylesOf(collection)).map(({ thumbnail }) => thumbnail);
  const remove = async (path: string): Promise<void> => expect((await call('DELETE', path)).status).toBe(200);
  const filesOf = (promptId: string) => api.backEnds.storage.contents(`thumbnails/${promptId}`);

  it('come with the picture of a Prompt that is drawn later, at a URL of their own', async () => {
    const prompt = await makePrompt();
    const collection = await makeCollection([prompt, prompt]);
    expect(await thumbnailsOf(collection)).toEqual([null, null]);
    await drawTask(api, prompt);
    const urls = await thumbnailsOf(collection);
    expect(new Set(urls).size).toBe(2);
    for (const url of urls) expect((await fetch(`${api.baseUrl}${new URL(url!).pathname}`)).status).toBe(200);
  });

  it('are null for good where the Prompt failed', async () => {
    const prompt = await makePrompt();
    const collection = await makeCollection([prompt]);
    await failTask(api, prompt, 'It cannot be drawn.');
    expect([await thumbnailsOf(collection), await filesOf(prompt)]).toEqual([[null], []]);
  });

  it('are never missing, whenever the Style is made while the Prompt is settled', async () => {
    for (let round = 0; round < 5; round++) {
      const prompt = await makePrompt();
      const [, ...collections] = await Promise.all([
        drawTask(api, prompt),
        ...Array.from({ length: 8 }, () => makeCollection([prompt])),
      ]);
      for (const collection of collections) expect(await thumbnailsOf(collection)).toEqual([expect.any(String)]);
    }
  });

  it('do not keep a Prompt from being deleted while it is settled', async () => {
    for (let round = 0; round < 5; round++) {
      const prompt = await makePrompt();
      await makeCollection([prompt]);
      await Promise.all([
        drawTask(api, prompt).catch(() => undefined),
        remove(`/finetunes/${finetune}/prompts/${prompt}`),
      ]);
    }
  });

  it('are kept until the Prompt and all Styles made from it are deleted', async () => {
    const prompt = await makePrompt();
    await drawTask(api, prompt);
    const [first, second] = [await makeCollection([prompt, prompt]), await makeCollection([prompt])];
    const [style] = await stylesOf(first);
    await remove(`/finetunes/${finetune}/prompts/${prompt}`);
    await remove(`/prompts/collections/${first}/styles/${style.id}`);
    await remove(`/prompts/collections/${second}`);
    expect(await filesOf(prompt)).toEqual([`thumbnails/${prompt}/1/0.png`]);
    await remove(`/prompts/collections/${first}`);
    expect(await filesOf(prompt)).toEqual([]);
  });

  it('are deleted with a Prompt that no Style was made from, and not before it', async () => {
    const prompt = await makePrompt();
    await drawTask(api, prompt);
    await remove(`/prompts/collections/${await makeCollection([prompt])}`);
    expect(await filesOf(prompt)).toHaveLength(1);
    await remove(`/finetunes/${finetune}/prompts/${prompt}`);
    expect(await filesOf(prompt)).toEqual([]);
  });

  it('count as pictures of the key, as long as the Prompt is there', async () => {
    const other = await api.createKey();
    const { id } = await makeFinetune(api, other);
    const [prompt] = await makePrompts(api, other, id);
    await drawTask(api, prompt.id);
    const stored = () =>
      api.dataSource.query<object[]>(
        `SELECT stored.picture_bytes - (SELECT sum(bytes) FROM images WHERE task_id = $2) > 0 AS more
         FROM storage_use stored WHERE owner_id = $1`,
        [other.id, prompt.id],
      );
    expect(await stored()).toEqual([{ more: true }]);
    await api.request('DELETE', `/v1/finetunes/${id}`, { key: other });
    const counted = 'SELECT picture_bytes FROM storage_use WHERE owner_id = $1';
    expect(await api.dataSource.query(counted, [other.id])).toEqual([{ picture_bytes: '0' }]);
    expect(await filesOf(prompt.id)).toEqual([]);
  });

  it('count in the storage of the key as long as a Style has them, also after their Prompt', async () => {
    const other = await api.createKey();
    const { id } = await makeFinetune(api, other);
    const [early] = await makePrompts(api, other, id);
    const [late] = await makePrompts(api, other, id);
    await drawTask(api, early.id);
    const body = { name: 'both', styles: [early, late].map((prompt) => ({ id: prompt.id, name: 'x' })) };
    const made = await api.request<{ id: string }>('POST', '/v1/prompts/collections', { key: other, body });
    await drawTask(api, late.id);
    for (const prompt of [early, late])
      await api.request('DELETE', `/v1/finetunes/${id}/prompts/${prompt.id}`, { key: other });
    const onDisk = async (): Promise<number> => {
      const sizes: number[] = [];
      for (const prompt of [early, late])
        for await (const { bytes } of api.app.get<ImageStorage>(IMAGE_STORAGE).list(`thumbnails/${prompt.id}`))
          sizes.push(bytes);
      expect(sizes).toHaveLength(2);
      return sizes.reduce((sum, bytes) => sum + bytes, 0);
    };
    const counted = async () => {
      const [row] = await api.dataSource.query<{ bytes: string }[]>(
        'SELECT record_bytes AS bytes FROM storage_use WHERE owner_id = $1',
        [other.id],
      );
      return Number(row.bytes);
    };
    const [withStyles, thumbnails] = [await counted(), await onDisk()];
    const [texts] = await api.dataSource.query<{ bytes: string }[]>(
      `SELECT sum(600 + octet_length(name) + octet_length(template) + coalesce(octet_length(negative_prompt), 0)) AS bytes
       FROM styles WHERE owner_id = $1`,
      [other.id],
    );
    await api.request('DELETE', `/v1/prompts/collections/${made.body.id}`, { key: other });
    // A Collection counts 1 kB.
    expect(withStyles - (await counted())).toBe(thumbnails + Number(texts.bytes) + 1000);
  });
});
