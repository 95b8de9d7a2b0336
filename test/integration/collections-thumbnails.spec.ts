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
});
