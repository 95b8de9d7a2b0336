import { Collection, newIdentifier, Style } from '@app/domain';
import type { Finetune } from '@app/domain';
import { IMAGE_STORAGE } from '@app/storage';
import type { ImageStorage } from '@app/storage';
import sharp from 'sharp';
import type { Reply, TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import type { ProblemJson } from '../support/factories';
import { insertFinetune, insertPicture, insertPrompt } from '../support/prompt-rows';

interface Resource {
  id: string;
  name: string;
  thumbnail: string | null;
}

const base = '/v1/prompts/collections';

describe('Collections and Styles', () => {
  let api: TestApi;
  let storage: ImageStorage;
  let key: TestKey;
  let finetune: Finetune;

  beforeAll(async () => {
    api = await startTestApi();
    storage = api.app.get<ImageStorage>(IMAGE_STORAGE);
  });

  beforeEach(async () => {
    key = await api.createKey();
    finetune = await insertFinetune(api.dataSource.manager, key.id);
  });

  afterAll(() => api.close());

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
    it('answers 201 with id, name and thumbnail only', async () => {
      const { status, body } = await create([{ id: (await prompt()).id, name: 'Neon' }], 'Ünïcode 🌙');
      expect(status).toBe(201);
      expect(body).toEqual({ id: body.id, name: 'Ünïcode 🌙', thumbnail: null });
      expect(body.id).toMatch(/^[\w-]{24}$/);
    });

    it('accepts an empty list of Styles', async () => {
      const { status, body } = await create([]);
      expect(status).toBe(201);
      expect((await call<Resource[]>('GET', `/${body.id}/styles`)).body).toEqual([]);
    });

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
    });

    const good = { id: newIdentifier(), name: 'Neon' };
    it.each<[string, unknown, string]>([
      ['nothing', undefined, ''],
      ['an array', [], ''],
      ['no name', { styles: [] }, '/name'],
      ['no styles', { name: 'x' }, '/styles'],
      ['null styles', { name: 'x', styles: null }, '/styles'],
      ['styles that are no array', { name: 'x', styles: good }, '/styles'],
      ['101 styles', { name: 'x', styles: Array(101).fill(good) }, '/styles'],
      ['an empty name', { name: '', styles: [] }, '/name'],
      ['a long name', { name: 'x'.repeat(201), styles: [] }, '/name'],
      ['a NUL in the name', { name: 'a\0b', styles: [] }, '/name'],
      ['a lone surrogate in the name', { name: 'a\ud800', styles: [] }, '/name'],
      ['a number as name', { name: 7, styles: [] }, '/name'],
      ['an unknown field', { name: 'x', styles: [], thumbnail: 'x' }, '/thumbnail'],
      ['a Style that is a number', { name: 'x', styles: [good, 7] }, '/styles/1'],
      ['a Style that is null', { name: 'x', styles: [null] }, '/styles/0'],
      ['a Style that is an array', { name: 'x', styles: [[good]] }, '/styles/0'],
      ['a Style that is an empty array', { name: 'x', styles: [[]] }, '/styles/0'],
      ['a Style without an id', { name: 'x', styles: [good, { name: 'x' }] }, '/styles/1/id'],
      ['a Style without a name', { name: 'x', styles: [{ id: good.id }] }, '/styles/0/name'],
      ['a Style with cfg 0.9', { name: 'x', styles: [{ ...good, cfg: 0.9 }] }, '/styles/0/cfg'],
      ['a Style with cfg 20.1', { name: 'x', styles: [{ ...good, cfg: 20.1 }] }, '/styles/0/cfg'],
      ['a Style with a text as cfg', { name: 'x', styles: [{ ...good, cfg: '7.5' }] }, '/styles/0/cfg'],
      ['a Style with no steps', { name: 'x', styles: [{ ...good, steps: 0 }] }, '/styles/0/steps'],
      ['a Style with 51 steps', { name: 'x', styles: [{ ...good, steps: 51 }] }, '/styles/0/steps'],
      ['a Style with 2.5 steps', { name: 'x', styles: [{ ...good, steps: 2.5 }] }, '/styles/0/steps'],
      ['a Style with an unknown field', { name: 'x', styles: [{ ...good, seed: 1 }] }, '/styles/0/seed'],
    ])('rejects %s with 400', async (_, body, pointer) => {
      const reply = await call<ProblemJson>('POST', '', body);
      expect(reply.status).toBe(400);
      expect(reply.headers.get('content-type')).toMatch(/^application\/problem\+json/);
      expect(reply.body.code).toBe('ValidationFailed');
      expect(reply.body.errors?.map((error) => error.pointer)).toEqual([pointer]);
    });

    it('accepts the limits of every field', async () => {
      const { id } = await prompt();
      const styles = [
        { id, name: 'x'.repeat(200), cfg: 1, steps: 1 },
        { id, name: 'x', cfg: 20, steps: 50 },
      ];
      expect((await create(styles, '🌙'.repeat(200))).status).toBe(201);
      expect((await create(Array<object>(100).fill({ id, name: 'same' }))).status).toBe(201);
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

    it.each(['?limit=0', '?limit=101', '?limit=x', '?after=x', `?after=${newIdentifier()}`])(
      'rejects %s',
      async (query) => {
        expect((await call<ProblemJson>('GET', query)).status).toBe(400);
      },
    );
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
