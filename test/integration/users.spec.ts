import { startTestApi, type TestKey } from '../support/api';
import { drawTask, makeFinetune, makePrompts, type ProblemJson } from '../support/factories';
import { ofSuite, ofTest } from '../support/of-suite';
import { smallPicture } from '../support/small-picture';
import { makeTuned } from '../support/world';

interface Row {
  key?: string;
  user?: string | null;
  finetune?: string | null;
  images: number;
  pixels: number;
}

// A picture's URL needs a port.
const api = ofSuite(() => startTestApi({ PUBLIC_URL: 'http://localhost:3999' }));
const key = ofTest(() => api.createKey());
const call = <T>(method: string, path: string, body?: unknown, caller: TestKey = key) =>
  api.request<T>(method, `/v1${path}`, { key: caller, ...(body !== undefined && { body }) });
const generate = async (body: object, caller: TestKey = key) =>
  (await call<{ id: string; user: string | null }>('POST', '/sd/text-to-image', { prompt: 'a star', ...body }, caller))
    .body;

describe('The user of', () => {
  it('a Generation is in its record as it was sent, and narrows the list', async () => {
    const made = await generate({ user: 'Müller & co' });
    await generate({ user: 'another' });
    await generate({});
    const { body: read } = await call<object>('GET', `/sd/text-to-image/${made.id}`);
    expect([made, read]).toMatchObject([{ user: 'Müller & co' }, { user: 'Müller & co' }]);
    const { body: found } = await call<object[]>('GET', `/sd/text-to-image?user=${encodeURIComponent('Müller & co')}`);
    expect(found).toMatchObject([{ id: made.id }]);
  });

  it('a Prompt, also of a Style, is in its status, and narrows the list', async () => {
    const { id } = await makeFinetune(api, key);
    const [prompt] = await makePrompts(api, key, id, [{ prompt: 'a robot', user: 'ann' }]);
    const { body: collection } = await call<{ id: string }>('POST', '/prompts/collections', {
      name: 'x',
      styles: [{ id: prompt.id, name: 'x' }],
    });
    const { body: applied } = await call<{ id: string }[]>('POST', `/finetunes/${id}/styles`, [
      { id: collection.id, user: 'bob' },
    ]);
    expect([Object.keys(prompt), Object.keys(applied[0])].flat()).not.toContain('user');
    for (const [made, user] of [
      [prompt, 'ann'],
      [applied[0], 'bob'],
    ] as const) {
      const { body } = await call<object>('GET', `/finetunes/${id}/prompts/${made.id}/status`);
      expect(body).toMatchObject({ user });
      expect((await call<object[]>('GET', `/finetunes/${id}/prompts?user=${user}`)).body).toMatchObject([
        { id: made.id },
      ]);
    }
  });

  async function trainingOf(user: string) {
    const images_url = [];
    for (const colour of ['red', 'green', 'blue', 'white']) {
      const upload = await api.request<{ url: string }>('POST', '/v1/uploads', {
        key,
        raw: await smallPicture(colour),
      });
      images_url.push(upload.body.url);
    }
    return { name: 'robot', model: 'shapes', images_url, user };
  }

  it('a training is in it, and narrows the list', async () => {
    const [ofAnn, ofBob] = [await trainingOf('ann'), await trainingOf('bob')];
    const { body: made } = await call<{ id: string }>('POST', '/finetunes', ofAnn);
    const fetched = { name: 'robot', weights_url: 'http://example.com/x.safetensors', user: 'ann' };
    const { body: other } = await call<{ id: string }>('POST', '/finetunes', fetched);
    await call('POST', '/finetunes', ofBob);
    await makeFinetune(api, key);
    expect(made).toMatchObject({ user: 'ann' });
    const listed = async (query: string, caller = key) =>
      (await call<{ id: string }[]>('GET', `/finetunes?${query}`, undefined, caller)).body.map(({ id }) => id);
    expect(await listed('user=ann')).toEqual([other.id, made.id]);
    expect(await listed(`user=ann&limit=1&after=${other.id}`)).toEqual([made.id]);
    expect(await listed('user=ann', await api.createKey())).toEqual([]);
    expect((await call<ProblemJson>('GET', '/finetunes?user=')).body.errors?.[0].parameter).toBe('user');
    expect((await call<ProblemJson>('POST', '/finetunes', { name: 'robot', user: 'ann' })).body.status).toBe(422);
  });

  it.each(['images_url', 'weights_url'])('a body with %s is that of its Prompts that name none', async (source) => {
    const { id: finetune } = await makeFinetune(api, key);
    const [{ id }] = await makePrompts(api, key, finetune);
    const styles = [{ id, name: 'x' }];
    const { body: collection } = await call<{ id: string }>('POST', '/prompts/collections', { name: 'x', styles });
    const { images_url, ...rest } = await trainingOf('ann');
    const { body: made } = await call<{ id: string; prompts: string[] }>('POST', '/finetunes', {
      ...rest,
      [source]: source === 'images_url' ? images_url : 'http://example.com/x.safetensors',
      prompts: [{ prompt: 'a robot' }, { prompt: 'a robot', user: 'bob' }, { prompt: 'a robot', user: null }],
      styles: [{ id: collection.id }],
    });
    const users = made.prompts.map(async (prompt) => {
      const { body } = await call<{ user: string }>('GET', `/finetunes/${made.id}/prompts/${prompt}/status`);
      return body.user;
    });
    expect(await Promise.all(users)).toEqual(['ann', 'bob', 'ann', 'ann']);
    const drawings = (await call<object[]>('GET', '/drawings?user=ann')).body;
    expect(drawings).toHaveLength(3);
  });

  it.each(['', 'x'.repeat(257), 'a\u0000b', 7, ['ann']])('anything is not %j', async (user) => {
    const { body } = await call<ProblemJson>('POST', '/sd/text-to-image', { prompt: 'x', user });
    expect([body.status, body.errors?.[0].pointer]).toEqual([400, '/user']);
  });
});

describe('Usage', () => {
  const usage = (query: string, caller: TestKey = key) => call<Row[]>('GET', `/usage?${query}`, undefined, caller);
  const pixels = 64 * 64;

  it('is summed by what it is grouped by, also together', async () => {
    for (const [user, count] of [
      ['ann', 2],
      ['ann', 1],
      ['bob', 1],
      [undefined, 3],
    ] as const)
      await drawTask(api, (await generate({ user, num_generations: count, steps: 10 })).id, 0.5);
    const byUser = (await usage('group_by=user')).body;
    expect(byUser).toEqual([
      { user: 'ann', images: 3, steps: 30, pixels: 3 * pixels, compute_seconds: 1 },
      { user: 'bob', images: 1, steps: 10, pixels, compute_seconds: 0.5 },
      { user: null, images: 3, steps: 30, pixels: 3 * pixels, compute_seconds: 0.5 },
    ]);
    const ofAnn = { images: 3, steps: 30, pixels: 3 * pixels, compute_seconds: 1 };
    expect((await usage('group_by=model&user=ann')).body).toEqual([{ model: 'sd1.5', ...ofAnn }]);
    expect((await usage('user=nobody')).body).toEqual([]);
    const both = (await usage('group_by=user,model')).body;
    expect(both.map((row) => Object.keys(row).slice(0, 2))).toEqual(Array(3).fill(['user', 'model']));
    const [all] = (await usage('group_by=key')).body;
    expect(all).toEqual({ key: key.id, images: 7, steps: 70, pixels: 7 * pixels, compute_seconds: 2 });
  });

  it('counts a Generation with Fine-Tunes for each of them under finetune, and once in all sums', async () => {
    const [first, second] = [await makeTuned(api, key), await makeTuned(api, key)].sort();
    const finetunes = [{ id: second }, { id: first }];
    await drawTask(api, (await generate({ finetunes, user: 'ann' })).id);
    await drawTask(api, (await generate({ finetunes: [{ id: first }] })).id);
    const imagesBy = async (group: string) =>
      (await usage(`group_by=${group}`)).body.map(({ finetune, user, images }) => [finetune ?? user, images]);
    expect(await imagesBy('finetune')).toEqual([
      [first, 2],
      [second, 1],
    ]);
    expect(await imagesBy('user')).toEqual([
      ['ann', 1],
      [null, 1],
    ]);
    expect((await usage('group_by=model')).body).toMatchObject([{ images: 2 }]);
    expect((await usage('group_by=user,finetune')).body).toHaveLength(3);
  });

  it('counts what an older version wrote as without a user', async () => {
    await drawTask(api, (await generate({ user: 'ann' })).id);
    await api.dataSource.query('UPDATE daily_usage SET images = images + 5 WHERE owner_id = $1', [key.id]);
    expect((await usage('group_by=user')).body).toMatchObject([
      { user: 'ann', images: 1 },
      { user: null, images: 5 },
    ]);
  });

  it('of an account is that of its keys, and of all keys for the scope admin alone', async () => {
    const ally = await api.createKey({ accountId: key.id });
    const operator = await api.createKey({ scopes: ['admin'] });
    await drawTask(api, (await generate({ user: 'ann' })).id);
    await drawTask(api, (await generate({ user: 'ann' }, ally)).id);
    expect((await usage('group_by=user')).body).toMatchObject([{ images: 1 }]);
    for (const caller of [key, ally]) {
      const { body } = await usage('scope=account&group_by=key,user', caller);
      expect(new Set(body.map((row) => row.key))).toEqual(new Set([key.id, ally.id]));
      expect((await usage('scope=account&group_by=user', caller)).body).toMatchObject([{ user: 'ann', images: 2 }]);
    }
    expect((await usage('scope=account', operator)).body).toEqual([]);
    expect((await usage('scope=all')).status).toBe(403);
    const all = (await usage('scope=all&group_by=key', operator)).body.map((row) => row.key);
    expect(all).toEqual(expect.arrayContaining([key.id, ally.id]));
    expect((await call<Row[]>('GET', `/keys/${ally.id}/usage?group_by=user`, undefined, operator)).body).toMatchObject([
      { user: 'ann', images: 1 },
    ]);
  });

  it.each(['', 'hour', 'day,', 'day,day', 'day, user'])('is not grouped by "%s"', async (groups) => {
    const { status, body } = await call<ProblemJson>('GET', `/usage?group_by=${encodeURIComponent(groups)}`);
    expect([status, body.errors?.[0].parameter]).toEqual([400, 'group_by']);
  });
});
