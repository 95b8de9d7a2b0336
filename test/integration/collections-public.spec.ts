import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { applyTemplate, Collection, limits, newIdentifier, Style } from '@app/domain';
import { IMAGE_STORAGE } from '@app/storage';
import type { ImageStorage } from '@app/storage';
import sharp from 'sharp';
import { IsNull } from 'typeorm';
import type { PublicCollection } from '../../apps/api/src/collections/public/public-collections.seeder';
import {
  PublicCollectionsSeeder,
  readPublicCollections,
} from '../../apps/api/src/collections/public/public-collections.seeder';
import { stylesToApply } from '../../apps/api/src/collections/applied-styles';
import type { Reply, TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { insertFinetune, insertPrompt } from '../support/prompt-rows';

interface Resource {
  id: string;
  name: string;
  thumbnail: string | null;
}

interface Problem {
  code: string;
  detail: string;
  errors?: { pointer: string }[];
}

const base = '/v1/prompts/collections';

describe('public Collections', () => {
  let api: TestApi;
  let key: TestKey;
  let shipped: PublicCollection[];

  beforeAll(async () => {
    api = await startTestApi();
    key = await api.createKey();
    shipped = await readPublicCollections();
  });

  afterAll(() => api.close());

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

  it.each(['?scope=', '?scope=own', '?scope=PUBLIC', '?scope=public&scope=public'])('rejects %s', async (query) => {
    const { status, body } = await call<Problem>('GET', query);
    expect([status, body.code]).toEqual([400, 'ValidationFailed']);
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

  it('have a thumbnail file for each Style, and no other files', async () => {
    const files = await readdir(join(__dirname, '../../apps/api/src/collections/public/thumbnails'));
    const expected = shipped.flatMap(({ styles }) => styles.map(({ id }) => `${id}.png`));
    expect(files.sort()).toEqual(expected.sort());
  });

  describe(stylesToApply.name, () => {
    const resolve = (ids: string[]) =>
      stylesToApply(
        api.dataSource.manager,
        key.id,
        ids.map((id) => ({ id })),
      );

    it('resolves Collections and Styles, own and public, in the order of the input', async () => {
      const [{ id, styles }] = shipped;
      const finetune = await insertFinetune(api.dataSource.manager, key.id);
      const source = await insertPrompt(api.dataSource.manager, finetune, { prompt: 'one robot' });
      const own = (await call('POST', '', { name: 'own', styles: [{ id: source.id, name: 'mine' }] })).body;
      const [{ id: ownStyle }] = (await call<Resource[]>('GET', `/${own.id}/styles`)).body;
      const empty = (await call('POST', '', { name: 'empty', styles: [] })).body;
      const resolved = await resolve([styles[1].id, id, own.id, empty.id, ownStyle, id]);
      const all = styles.map(({ name }) => name);
      expect(resolved.map((group) => group.map(({ name }) => name))).toEqual([
        [styles[1].name],
        all,
        ['mine'],
        [],
        ['mine'],
        all,
      ]);
      expect(applyTemplate(resolved[4][0].template, { token: 'qrs', name: 'star' })).toBe('one qrs star');
    });

    it('rejects more Styles than one request may apply', async () => {
      const { id } = (await call('POST', '', { name: 'many', styles: [] })).body;
      const add = (count: number) =>
        api.dataSource.query(
          `INSERT INTO styles (id, owner_id, collection_id, name, template, cfg, steps, created_at)
           SELECT substr(md5(random()::text), 1, 24), $1, $2, 'x', '{finetune}', 7, 20, now() FROM generate_series(1, $3)`,
          [key.id, id, count],
        );
      await add(limits.appliedPrompts);
      expect((await resolve([id])).flat()).toHaveLength(limits.appliedPrompts);
      await add(1);
      await expect(resolve([id])).rejects.toMatchObject({ kind: 'unprocessable', code: 'TooManyPrompts' });
    });

    it("names each id that is neither, including another caller's", async () => {
      const stranger = await api.createKey();
      const theirs = await api.request<Resource>('POST', base, { key: stranger, body: { name: 'x', styles: [] } });
      const ids = [shipped[0].id, newIdentifier(), theirs.body.id, 'x'];
      await expect(resolve(ids)).rejects.toMatchObject({
        kind: 'unprocessable',
        code: 'StyleNotFound',
        fields: [1, 2, 3].map((index) => ({ pointer: `/${index}/id` })),
      });
    });
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
