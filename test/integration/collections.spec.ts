import { buffer } from 'node:stream/consumers';
import { Collection, type Finetune, limits, newIdentifier, Style, Task } from '@app/domain';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import sharp from 'sharp';
import { DataSource, type EntityManager, IsNull } from 'typeorm';
import { JsonLogger } from '@app/observability';
import { type Reply, startTestApi, type TestKey } from '../support/api';
import {
  drawTask,
  makeFinetune,
  makePrompts,
  type ProblemJson,
  type PromptJson,
  storedKeys,
} from '../support/factories';
import { insertFinetune, insertPicture, insertPrompt } from '../support/prompt-rows';
import { FileSweeper } from '../../apps/inference/src/sweeper/file-sweeper';
import { rowsRead } from '../support/rows-read';
import { keysIn } from '../support/stored-objects';
import {
  type PublicCollection,
  PublicCollectionsSeeder,
  readPublicCollections,
} from '../../apps/api/src/collections/public/public-collections.seeder';
import { bundledDefaults } from '../support/bundled-defaults';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';

interface Resource {
  id: string;
  name: string;
  thumbnail: string | null;
}
const base = '/v1/prompts/collections';
interface Problem {
  code: string;
  detail: string;
  errors?: { pointer: string }[];
}

const api = ofSuite(startTestApi);

describe('Collections and Styles', () => {
  let storage: ImageStorage;
  let key: TestKey;
  let finetune: Finetune;

  beforeAll(async () => {
    storage = api.app.get<ImageStorage>(IMAGE_STORAGE);
  });

  beforeEach(async () => {
    key = await api.createKey();
    finetune = await insertFinetune(api.dataSource.manager, key.id);
  });

  const prompt = (values?: Parameters<typeof insertPrompt>[2]) =>
    insertPrompt(api.dataSource.manager, finetune, values);
  const picture = (taskId: string, options?: Parameters<typeof insertPicture>[3]) =>
    insertPicture(api.dataSource.manager, storage, taskId, options);
  const call = <T = Resource>(method: string, path = '', body?: unknown, as = key): Promise<Reply<T>> =>
    api.request<T>(method, `${base}${path}`, { key: as, body });
  const create = (styles: object[] = [], name = 'Night scenes') => call('POST', '', { name, styles });
  const pathOf = (url: string) => new URL(url).pathname;
  const stylesOf = async (id: string) => (await call<Resource[]>('GET', `/${id}/styles`)).body;

  describe('POST /v1/prompts/collections', () => {
    it("keeps the Prompt's text as a template, its negative prompt, and cfg and steps unless they are given", async () => {
      const source = await prompt({
        prompt: 'a zwx robot, {sharp}, Robot',
        task: { negativePrompt: 'rain', cfg: 11.5, steps: 17 },
      });
      const { body } = await create([
        { id: source.id, name: 'as it is' },
        { id: source.id, name: 'given', cfg: 3.25, steps: 50 },
      ]);
      const rows = await api.dataSource.manager.find(Style, {
        where: { collectionId: body.id },
        order: { seq: 'ASC' },
      });
      expect(rows).toMatchObject([
        {
          name: 'as it is',
          template: 'a {finetune}, {{sharp}}, {finetune}',
          negativePrompt: 'rain',
          cfg: 11.5,
          steps: 17,
        },
        { name: 'given', ownerId: key.id, cfg: 3.25, steps: 50 },
      ]);
    });

    it('shows the first Style as its thumbnail at once when there is a picture', async () => {
      const [red, green] = [await prompt(), await prompt()];
      await picture(red.id, { background: 'red' });
      await picture(green.id, { background: 'green' });
      const { body } = await create([
        { id: green.id, name: 'first' },
        { id: red.id, name: 'second' },
      ]);
      const styles = await stylesOf(body.id);
      expect(styles.map(({ name }) => name)).toEqual(['second', 'first']);
      expect(body.thumbnail).toBe(styles[1].thumbnail);
      expect(body.thumbnail).toMatch(/^http:\/\/.+\/images\/[\w-]{24}\.png$/);
      expect(new Set(styles.map(({ thumbnail }) => thumbnail)).size).toBe(2);
      const response = await fetch(`${api.baseUrl}${pathOf(body.thumbnail!)}`);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('image/png');
      expect(response.headers.get('cache-control')).toBe('private, max-age=31536000, immutable');
      const image = sharp(Buffer.from(await response.arrayBuffer()));
      expect(await image.metadata()).toMatchObject({ format: 'png', width: 256, height: 256 });
      expect((await image.stats()).channels[1].mean).toBeCloseTo(128, 0);
      const missing = await fetch(`${api.baseUrl}/images/${'x'.repeat(24)}.png`);
      expect([missing.status, missing.headers.get('cache-control')]).toEqual([404, 'no-store']);
    });

    it('creates nothing and names each id that is not a Prompt of the caller', async () => {
      const { id } = await prompt();
      const stranger = await api.createKey();
      const theirs = await insertFinetune(api.dataSource.manager, stranger.id);
      const foreign = await insertPrompt(api.dataSource.manager, theirs);
      const reply = await create([
        { id, name: 'a' },
        { id: newIdentifier(), name: 'b' },
        { id: foreign.id, name: 'c' },
        { id: 'no identifier', name: 'd' },
      ]);
      expect(reply.status).toBe(422);
      const problem = reply.body as unknown as ProblemJson;
      expect(problem.code).toBe('PromptNotFound');
      expect(problem.errors).toEqual(
        [1, 2, 3].map((n) => ({
          pointer: `/styles/${n}/id`,
          message: expect.stringMatching(/^is no Prompt of yours: "[^"]+"$/) as string,
        })),
      );
      expect(await api.dataSource.manager.countBy(Collection, { ownerId: key.id })).toBe(0);
      expect(await api.dataSource.manager.countBy(Style, { ownerId: key.id })).toBe(0);
    });
  });

  describe('GET /v1/prompts/collections', () => {
    it("lists the caller's own, newest first, in pages that link to the next", async () => {
      const names = ['a', 'b', 'c'];
      for (const name of names) await create([], name);
      await call('POST', '', { name: 'theirs', styles: [] }, await api.createKey());
      const all = await call<Resource[]>('GET');
      expect(all.body.map(({ name }) => name)).toEqual(['c', 'b', 'a']);
      const first = await call<Resource[]>('GET', '?limit=2');
      expect(first.body).toEqual(all.body.slice(0, 2));
      const next = /^<(.+)>; rel="next"$/.exec(first.headers.get('link') ?? '')?.[1];
      const second = await call<Resource[]>('GET', new URL(next!).search);
      expect(second.body).toEqual(all.body.slice(2));
      expect(second.headers.get('link')).toBeNull();
    });
  });

  describe('POST /v1/prompts/collections/:id/styles', () => {
    it('returns the new Styles in the order of the input', async () => {
      const { body: collection } = await create([{ id: (await prompt()).id, name: 'there already' }]);
      const drawn = await prompt();
      await picture(drawn.id);
      const { status, body } = await call<Resource[]>('POST', `/${collection.id}/styles`, [
        { id: drawn.id, name: 'b' },
        { id: (await prompt()).id, name: 'a', cfg: 2, steps: 3 },
      ]);
      expect(status).toBe(201);
      expect(body).toEqual([
        { id: body[0].id, name: 'b', thumbnail: body[0].thumbnail },
        { id: body[1].id, name: 'a', thumbnail: null },
      ]);
      expect(body[0].thumbnail).toMatch(/\.png$/);
      const listed = await call<Resource[]>('GET', `/${collection.id}/styles`);
      expect(listed.body.map(({ name }) => name)).toEqual(['a', 'b', 'there already']);
      expect((await call('GET', `/${collection.id}/styles/${body[0].id}`)).body).toEqual(body[0]);
    });

    it('adds nothing if one element is invalid', async () => {
      const { body: collection } = await create();
      const { id } = await prompt();
      const path = `/${collection.id}/styles`;
      const nowhere = newIdentifier();
      const unknown = await call<ProblemJson>('POST', path, [
        { id, name: 'a' },
        { id: nowhere, name: 'b' },
      ]);
      expect([unknown.status, unknown.body.errors]).toEqual([
        422,
        [{ pointer: '/1/id', message: `is no Prompt of yours: "${nowhere}"` }],
      ]);
      const invalid = await call<ProblemJson>('POST', path, [
        { id, name: 'a' },
        { id, name: 'b', cfg: 21 },
      ]);
      expect([invalid.status, invalid.body.errors?.[0].pointer]).toEqual([400, '/1/cfg']);
      for (const body of [[], {}, Array(101).fill({ id, name: 'a' })])
        expect((await call<ProblemJson>('POST', path, body)).status).toBe(400);
      expect((await call<Resource[]>('GET', path)).body).toEqual([]);
    });
  });

  describe('DELETE', () => {
    it('removes a Style with its thumbnail; the Collection then shows the next one', async () => {
      const [first, second] = [await prompt(), await prompt()];
      await picture(first.id);
      await picture(second.id);
      const { body: collection } = await create([
        { id: first.id, name: 'first' },
        { id: second.id, name: 'second' },
      ]);
      const [later, earlier] = await stylesOf(collection.id);
      const path = `/${collection.id}/styles/${earlier.id}`;
      const reply = await call<{ delete: string }>('DELETE', path);
      expect(reply.status).toBe(200);
      expect(reply.body).toEqual({ delete: `Style ${earlier.id} has been deleted successfully.` });
      expect((await call<ProblemJson>('DELETE', path)).body.code).toBe('StyleNotFound');
      expect((await call('GET', `/${collection.id}`)).body.thumbnail).toBe(later.thumbnail);
      expect((await fetch(`${api.baseUrl}${pathOf(earlier.thumbnail!)}`)).status).toBe(404);
    });

    it('removes a Collection with its Styles and their thumbnails, and leaves the Prompts', async () => {
      const source = await prompt();
      await picture(source.id);
      const { body: collection } = await create([1, 2, 3].map((n) => ({ id: source.id, name: `${n}` })));
      const styles = await stylesOf(collection.id);
      const reply = await call<{ delete: string }>('DELETE', `/${collection.id}`);
      expect(reply.body).toEqual({ delete: `Collection ${collection.id} has been deleted successfully.` });
      for (const { thumbnail } of styles) expect((await fetch(`${api.baseUrl}${pathOf(thumbnail!)}`)).status).toBe(404);
      expect(await api.dataSource.manager.countBy(Style, { ownerId: key.id })).toBe(0);
      for (const [method, path] of [
        ['GET', ''],
        ['DELETE', ''],
        ['GET', '/styles'],
        ['GET', `/styles/${styles[0].id}`],
      ])
        expect((await call<ProblemJson>(method, `/${collection.id}${path}`)).body.code).toBe('CollectionNotFound');
      expect((await create([{ id: source.id, name: 'again' }])).status).toBe(201);
    });
  });
});

describe('Collections with very many Styles', () => {
  let key: TestKey;
  let path: string;

  beforeAll(async () => {
    key = await api.createKey();
    path = `/v1/finetunes/${(await makeFinetune(api, key, { model: 'shapes' })).id}/styles`;
    // Hundreds of other Collections, so that the planner expects each to be small. In random order, as rows are after
    // some time.
    await api.dataSource.query(
      `WITH made AS (
         INSERT INTO collections (id, owner_id, name, created_at)
         SELECT substr(md5(n::text), 1, 24), $1, 'small', now() FROM generate_series(1, 300) AS n RETURNING id
       )
       INSERT INTO styles (id, owner_id, collection_id, name, template, cfg, steps, created_at)
       SELECT substr(md5(random()::text), 1, 24), $1, id, 'x', '{finetune}', 7, 20, now()
       FROM made, generate_series(1, 100) ORDER BY random()`,
      [key.id],
    );
  });
  async function makeCollection(size: number): Promise<string> {
    const id = newIdentifier();
    await api.dataSource.query(
      `INSERT INTO collections (id, owner_id, name, created_at) VALUES ($1, $2, 'large', now())`,
      [id, key.id],
    );
    await api.dataSource.query(
      `INSERT INTO styles (id, owner_id, collection_id, name, template, cfg, steps, created_at)
       SELECT substr(md5(random()::text), 1, 24), $2, $1, 'x', '{finetune}', 7, 20, now() FROM generate_series(1, $3)`,
      [id, key.id, size],
    );
    await api.dataSource.query('ANALYZE styles');
    return id;
  }

  const applied = async (ids: string[]): Promise<number> =>
    rowsRead(api.app.get(DataSource), 'styles', async () => {
      const { status, body } = await api.request<ProblemJson>('POST', path, { key, body: ids.map((id) => ({ id })) });
      expect([status, body.code]).toEqual([422, 'TooManyPrompts']);
    });

  it('cost no more to refuse than one Style too many', async () => {
    const least = await applied([await makeCollection(limits.appliedPrompts + 1)]);
    expect(least).toBeGreaterThan(limits.appliedPrompts);
    expect(least).toBeLessThan(limits.appliedPrompts + 50);
    const large = [await makeCollection(20_000), await makeCollection(20_000)];
    expect(await applied(large.slice(0, 1))).toBeLessThanOrEqual(least);
    expect(await applied(large)).toBeLessThanOrEqual(least + 1);
  });

  it('are deleted with their first thousand thumbnail files; the sweeper removes the others', async () => {
    const id = await makeCollection(1050);
    await api.dataSource.query(
      `UPDATE styles SET source_prompt_id = id, thumbnail_key = 'thumbnails/' || id || '/1/0.png' WHERE collection_id = $1`,
      [id],
    );
    const keys = await api.dataSource.query<{ key: string }[]>(
      'SELECT thumbnail_key AS key FROM styles WHERE collection_id = $1',
      [id],
    );
    const storage = api.app.get<ImageStorage>(IMAGE_STORAGE);
    const before = new Set(await keysIn(storage));
    for (const { key: file } of keys) await storage.write(file, Buffer.from('x'));
    expect((await api.request('DELETE', `/v1/prompts/collections/${id}`, { key })).status).toBe(200);
    expect((await keysIn(storage)).filter((file) => !before.has(file))).toHaveLength(50);
    expect(await api.dataSource.query('SELECT id FROM styles WHERE collection_id = $1', [id])).toEqual([]);
    const logger = new JsonLogger('test', 'silent');
    await new FileSweeper(storage, api.dataSource, logger).sweep(Date.now() + 3_600_000);
    expect((await keysIn(storage)).filter((file) => !before.has(file))).toEqual([]);
  });
});

describe('public Collections', () => {
  let key: TestKey;
  let shipped: PublicCollection[];

  beforeAll(async () => {
    key = await api.createKey();
    shipped = await readPublicCollections();
  });

  const call = <T = Resource>(method: string, path = '', body?: unknown): Promise<Reply<T>> =>
    api.request<T>(method, `${base}${path}`, { key, body });

  it('are listed with scope=public, and nowhere else', async () => {
    const { status, body } = await call<Resource[]>('GET', '?scope=public');
    expect(status).toBe(200);
    expect(body.map(({ name }) => name)).toEqual(shipped.map(({ name }) => name).reverse());
    expect((await call<Resource[]>('GET', '?scope=public&limit=1')).headers.get('link')).toContain('scope=public');
    expect((await call<Resource[]>('GET')).body).toEqual([]);
    await call('POST', '', { name: 'own', styles: [] });
    expect((await call<Resource[]>('GET')).body.map(({ name }) => name)).toEqual(['own']);
    expect((await call<Resource[]>('GET', '?scope=public')).body).toEqual(body);
  });

  it('are changed by nobody', async () => {
    const [{ id, styles }] = shipped;
    const finetune = await insertFinetune(api.dataSource.manager, key.id);
    const own = await insertPrompt(api.dataSource.manager, finetune);
    for (const [method, path, body] of [
      ['DELETE', `/${id}`],
      ['POST', `/${id}/styles`, [{ id: own.id, name: 'x' }]],
      ['DELETE', `/${id}/styles/${styles[0].id}`],
    ] as const) {
      const reply = await call<Problem>(method, path, body);
      expect([reply.status, reply.body.code]).toEqual([403, 'PublicCollection']);
      expect(reply.body.detail).toContain('POST /v1/prompts/collections makes one of your own');
    }
    const unknown = await call<Problem>('DELETE', `/${id}/styles/${newIdentifier()}`);
    expect([unknown.status, unknown.body.code]).toEqual([404, 'StyleNotFound']);
    expect((await call<Resource[]>('GET', `/${id}/styles`)).body).toHaveLength(styles.length);
  });

  it('are read by everyone, with the thumbnail of the first Style', async () => {
    for (const collection of shipped) {
      const { body } = await call('GET', `/${collection.id}`);
      expect(body).toEqual({ id: collection.id, name: collection.name, thumbnail: body.thumbnail });
      const styles = (await call<Resource[]>('GET', `/${collection.id}/styles`)).body.reverse();
      expect(styles.map(({ id, name }) => ({ id, name }))).toEqual(
        collection.styles.map(({ id, name }) => ({ id, name })),
      );
      expect(body.thumbnail).toBe(styles[0].thumbnail);
      for (const { id, thumbnail } of styles) {
        expect((await call('GET', `/${collection.id}/styles/${id}`)).body.thumbnail).toBe(thumbnail);
        const response = await fetch(`${api.baseUrl}${new URL(thumbnail!).pathname}`);
        const png = Buffer.from(await response.arrayBuffer());
        expect(await sharp(png).metadata()).toMatchObject({ format: 'png', width: 256, height: 256 });
        expect(png.length).toBeLessThan(16_000);
      }
    }
  });

  describe(PublicCollectionsSeeder.name, () => {
    let seeder: PublicCollectionsSeeder;
    let storage: ImageStorage;

    beforeAll(() => {
      seeder = api.app.get(PublicCollectionsSeeder);
      storage = api.app.get<ImageStorage>(IMAGE_STORAGE);
    });

    afterEach(() => seeder.seed(shipped));

    const rows = async () => {
      const where = { ownerId: IsNull() };
      const { manager } = api.dataSource;
      const order = { id: 'ASC' } as const;
      return [await manager.find(Collection, { where, order }), await manager.find(Style, { where, order })];
    };
    const bytesOf = async (styleId: string) => {
      const object = await storage.read(`thumbnails/${styleId}.png`);
      return object && buffer(object.stream);
    };

    it('changes nothing when it is repeated, also by several processes at once', async () => {
      const before = await rows();
      await Promise.all([1, 2, 3].map(() => seeder.seed(shipped)));
      expect(await rows()).toEqual(before);
    });

    it('follows the data: names, texts and order change, ids stay', async () => {
      const [first, ...others] = structuredClone(shipped);
      first.name = 'Renamed';
      first.styles.reverse();
      first.styles[0].template = 'a portrait of a {finetune}';
      await seeder.seed([first, ...others]);
      expect((await call('GET', `/${first.id}`)).body.name).toBe('Renamed');
      const listed = (await call<Resource[]>('GET', `/${first.id}/styles`)).body.reverse();
      expect(listed.map(({ id }) => id)).toEqual(first.styles.map(({ id }) => id));
      const stored = await api.dataSource.manager.findOneByOrFail(Style, { id: first.styles[0].id });
      expect(stored.template).toBe('a portrait of a {finetune}');
    });

    it("removes Collections that are no longer shipped, with their thumbnails, and leaves the callers' own", async () => {
      const own = (await call('POST', '', { name: 'stays', styles: [] })).body;
      const [dropped, shortened, ...others] = structuredClone(shipped);
      const [gone] = shortened.styles.splice(0, 1);
      await seeder.seed([shortened, ...others]);
      expect((await call<Problem>('GET', `/${dropped.id}`)).status).toBe(404);
      expect((await call<Resource[]>('GET', `/${shortened.id}/styles`)).body).toHaveLength(shortened.styles.length);
      expect(await bytesOf(dropped.styles[0].id)).toBeUndefined();
      expect(await bytesOf(gone.id)).toBeUndefined();
      expect((await call('GET', `/${own.id}`)).status).toBe(200);
    });

    it('restores a lost or damaged thumbnail', async () => {
      const [first, second] = shipped[0].styles;
      const before = await bytesOf(first.id);
      await storage.removeAll(`thumbnails/${first.id}.png`);
      await storage.write(`thumbnails/${second.id}.png`, Buffer.from('damaged'));
      await seeder.seed(shipped);
      expect(await bytesOf(first.id)).toEqual(before);
      expect(await sharp(await bytesOf(second.id)).metadata()).toMatchObject({ width: 256 });
    });
  });
});

describe('a Collection from Prompts of one Fine-Tune, applied to another', () => {
  let key: TestKey;

  beforeAll(async () => {
    key = await api.createKey();
  });

  const call = <T>(method: string, path: string, body?: unknown) => api.request<T>(method, `/v1${path}`, { key, body });
  const pictureStatus = async (url: string | null) => (await fetch(`${api.baseUrl}${new URL(url!).pathname}`)).status;
  const rowCounts = () =>
    api.dataSource.query<object[]>(
      `SELECT (SELECT count(*) FROM finetunes) AS finetunes, (SELECT count(*) FROM finetune_prompts) AS prompts,
        (SELECT count(*) FROM tasks) AS tasks, (SELECT count(*) FROM images) AS images,
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

describe('Collections and Styles of several callers', () => {
  interface Problem {
    code: string;
    instance: string;
  }
  let key: TestKey;
  let finetune: Finetune;

  beforeEach(async () => {
    key = await api.createKey();
    finetune = await insertFinetune(api.dataSource.manager, key.id);
  });

  const prompt = () => insertPrompt(api.dataSource.manager, finetune);
  const call = <T = Resource>(method: string, path = '', body?: unknown, as = key): Promise<Reply<T>> =>
    api.request<T>(method, `${base}${path}`, { key: as, body });
  const create = (styles: object[] = []) => call('POST', '', { name: 'Night scenes', styles });

  describe('a Style that is made while its Collection or Prompt is deleted', () => {
    /** Keeps the transaction of `taking` open until the request waits for it. */
    async function during(
      taking: (manager: EntityManager) => Promise<unknown>,
      request: () => Promise<Reply<Problem>>,
    ) {
      let reply: Promise<Reply<Problem>> | undefined;
      await api.dataSource.transaction(async (manager) => {
        await taking(manager);
        reply = request();
        await until(async () => {
          const waiting = await api.dataSource.query<unknown[]>(
            `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
          );
          return waiting.length > 0;
        }, 'the request waits for the deletion');
      });
      return reply!;
    }

    it('is refused when its Collection is deleted', async () => {
      const { body: collection } = await create();
      const source = await prompt();
      const reply = await during(
        (manager) => manager.delete(Collection, { id: collection.id }),
        () => call<Problem>('POST', `/${collection.id}/styles`, [{ id: source.id, name: 'x' }]),
      );
      expect([reply.status, reply.body.code]).toEqual([404, 'CollectionNotFound']);
    });

    it('is refused when its Prompt is deleted', async () => {
      const source = await prompt();
      const reply = await during(
        (manager) => manager.delete(Task, { id: source.id }),
        () => call<Problem>('POST', '', { name: 'x', styles: [{ id: source.id, name: 'x' }] }),
      );
      expect([reply.status, reply.body.code]).toEqual([422, 'PromptNotFound']);
      expect(await api.dataSource.manager.countBy(Collection, { ownerId: key.id })).toBe(0);
    });
  });
});
