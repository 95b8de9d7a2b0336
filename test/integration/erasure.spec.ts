import { Writable } from 'node:stream';
import { runAudit } from '../../apps/cli/src/audit-command';
import { runErase } from '../../apps/cli/src/erase-command';
import { UsersOfOlderStyles1796370100004 } from '../../libs/database/src/migrations/1796370000004-users-of-styles';
import { RetentionService } from '../../apps/api/src/files/retention.service';
import { startTestApi, type TestKey } from '../support/api';
import { drawTask, failTask, makeFinetune, makePrompts, storedKeys } from '../support/factories';
import { ofTest } from '../support/of-suite';
import { smallPicture } from '../support/small-picture';
import { giveWeights, makeTuned } from '../support/world';

const api = ofTest(() => startTestApi({ PUBLIC_URL: 'http://localhost:3999', AUDIT_DAYS: '30', LOG_LEVEL: 'info' }));
const key = ofTest(() => api.createKey({ name: 'shop' }));

const user = 'ann@example.com';
const words = 'a portrait of Ann';

async function post<T = { id: string }>(caller: TestKey, path: string, body: object, headers = {}): Promise<T> {
  const reply = await api.request<T>('POST', `/v1${path}`, { key: caller, body, headers });
  if (reply.status !== 201) throw new Error(reply.text);
  return reply.body;
}
const generate = (caller: TestKey, body: object, headers = {}) =>
  post(caller, '/sd/text-to-image', { prompt: words, user, ...body }, headers);

async function upload(caller: TestKey, colour: string): Promise<string> {
  const raw = await smallPicture(colour, 64, 64);
  return (await api.request<{ url: string }>('POST', '/v1/uploads', { key: caller, raw })).body.url;
}

const surroundings = () => {
  const [stdout, stderr]: string[][] = [[], []];
  return {
    env: { DATABASE_URL: api.config.databaseUrl, DATA_DIR: api.config.dataDir, AUDIT_DAYS: '30', ...api.backEnds.env },
    stdout: new Writable({
      write: (text: Buffer, _, done) => {
        stdout.push(text.toString());
        done();
      },
    }),
    stderr: { write: (text: string) => stderr.push(text) },
    printed: () => stdout.join(''),
    said: () => stderr.join(''),
  };
};
async function erase(...args: string[]): Promise<Record<string, unknown>> {
  const around = surroundings();
  expect([await runErase(['--user', user, '--json', ...args], around), around.said()]).toEqual([0, '']);
  return JSON.parse(around.printed()) as Record<string, unknown>;
}
interface Line {
  id: string | null;
  [field: string]: unknown;
}
async function audit(...args: string[]): Promise<Line[]> {
  const around = surroundings();
  const asked = args.length > 0 ? args : ['--day', new Date().toISOString().slice(0, 10)];
  expect([await runAudit(asked, around), around.said()]).toEqual([0, '']);
  const lines = around.printed().split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Line);
}

/** Rows of all tables that have a text. */
async function rowsWith(text: string): Promise<string[]> {
  const tables = await api.dataSource.query<{ name: string }[]>(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await api.dataSource.query<{ row: string }[]>(
      `SELECT t::text AS row FROM "${name}" t WHERE position($1 in t::text) > 0`,
      [text],
    );
    found.push(...rows.map(({ row }) => `${name}: ${row}`));
  }
  return found;
}

async function trainingOf(caller: TestKey) {
  const images_url = [];
  for (const colour of ['blue', 'green', 'white', 'black']) images_url.push(await upload(caller, colour));
  return { name: 'face', images_url, user };
}

/** What a user leaves: everything that can say "user", in each state, and what comes of it. */
async function live(caller: TestKey): Promise<void> {
  const drawn = await generate(caller, { webhook: 'http://localhost:9/hook' }, { 'idempotency-key': 'first' });
  await drawTask(api, drawn.id);
  await generate(caller, { image: await upload(caller, 'red') });
  const { id: finetune } = await makeFinetune(api, caller);
  const [prompt] = await makePrompts(api, caller, finetune, [{ prompt: `${words} as a robot`, user }]);
  await drawTask(api, prompt.id);
  await post(caller, '/prompts/collections', { name: 'theirs', styles: [{ id: prompt.id, name: 'portrait' }] });
  await post(caller, '/finetunes', { ...(await trainingOf(caller)), prompts: [{ prompt: `${words}, a face` }] });
}

describe('npm run erase', () => {
  it('leaves nothing of a user in any table or file, and of others all', async () => {
    const before = await storedKeys(api);
    await live(key);
    const other = await generate(key, { prompt: 'a boat', user: 'bob' });
    await drawTask(api, other.id);
    const left = await storedKeys(api);
    expect((await rowsWith(user)).length).toBeGreaterThan(5);

    expect(await erase()).toEqual({
      user,
      account: null,
      at: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      generations: 2,
      prompts: 2,
      finetunes: 1,
      styles: 1,
      pictures: 2,
      uploads: 5,
      deliveries: 1,
      usage_rows: 2,
      audit_entries: 5,
      files_left: [],
    });
    expect(await rowsWith(user)).toEqual([]);
    expect(await rowsWith(words)).toEqual([]);
    expect(await storedKeys(api)).toEqual(left.filter((file) => before.includes(file) || file.startsWith(other.id)));
    const usage = await api.request<object[]>('GET', '/v1/usage?group_by=user', { key });
    expect(usage.body).toMatchObject([
      { user: 'bob', images: 1 },
      { user: null, images: 2 },
    ]);
    expect(await erase()).toMatchObject({ generations: 0, finetunes: 0, audit_entries: 0 });
  });

  it('takes what comes while it erases at its next run, and is no obstacle to others', async () => {
    const bob = async () => (await generate(key, { prompt: 'a boat', user: 'bob' })).id;
    let isOver = false;
    const made: string[] = [];
    const load = async (): Promise<void> => {
      while (!isOver) {
        await generate(key, {});
        made.push(await bob());
      }
    };
    const loads = [load(), load()];
    for (let round = 0; round < 3; round++) await erase();
    isOver = true;
    await Promise.all(loads);
    await erase();
    expect(await rowsWith(user)).toEqual([]);
    const { body } = await api.request<{ id: string }[]>('GET', '/v1/sd/text-to-image', { key });
    expect(body.map(({ id }) => id).sort()).toEqual(made.sort());
  });

  it('takes Styles whose Prompt, or Fine-Tune of the user, was deleted before, and leaves those of others', async () => {
    const { id: others } = await makeFinetune(api, key);
    const { id: theirs } = await post(key, '/finetunes', await trainingOf(key));
    const prompts = [
      ...(await makePrompts(api, key, others, [
        { prompt: `${words} as a robot`, user },
        { prompt: 'a robot at sea', user: 'bob' },
      ])),
      ...(await makePrompts(api, key, theirs, [{ prompt: 'a face at sea', user: 'bob' }])),
    ].map(({ id }) => id);
    for (const id of prompts.slice(0, 2)) await drawTask(api, id);
    const styles = prompts.map((id) => ({ id, name: `of ${id}` }));
    const collection = await post(key, '/prompts/collections', { name: 'looks', styles });
    const left = await storedKeys(api);
    for (const path of [`/finetunes/${others}/prompts/${prompts[0]}`, `/finetunes/${theirs}`])
      await api.request('DELETE', `/v1${path}`, { key });

    expect(await erase()).toMatchObject({ styles: 2, files_left: [] });
    expect(await rowsWith(words)).toEqual([]);
    expect(await rowsWith(user)).toEqual([]);
    const list = await api.request<object[]>('GET', `/v1/prompts/collections/${collection.id}/styles`, { key });
    expect(list.body).toMatchObject([{ name: `of ${prompts[1]}`, thumbnail: expect.any(String) as string }]);
    expect((await storedKeys(api)).filter((file) => file.includes(prompts[0]))).toEqual([]);
    const ofBob = (files: string[]) => files.filter((file) => file.includes(prompts[1]));
    expect(ofBob(await storedKeys(api))).toEqual(ofBob(left));
  });

  it('takes Styles that were made before Styles knew their users', async () => {
    const { id: finetune } = await makeFinetune(api, key);
    const prompts = await makePrompts(api, key, finetune, [
      { prompt: `${words} as a robot`, user },
      { prompt: 'a robot' },
    ]);
    const styles = prompts.map(({ id }) => ({ id, name: id }));
    const { id } = await post(key, '/prompts/collections', { name: 'looks', styles });
    await api.dataSource.query(`UPDATE styles SET end_users = '{}'`);
    const runner = api.dataSource.createQueryRunner();
    await new UsersOfOlderStyles1796370100004().up(runner);
    await runner.release();
    await api.request('DELETE', `/v1/finetunes/${finetune}`, { key });
    expect(await erase()).toMatchObject({ styles: 1 });
    const left = await api.request<object[]>('GET', `/v1/prompts/collections/${id}/styles`, { key });
    expect(left.body).toMatchObject([{ name: prompts[1].id }]);
  });

  it('takes what others drew with a Fine-Tune of the user, also of one that was deleted before', async () => {
    for (const isDeleted of [false, true]) {
      const { id } = await post(key, '/finetunes', await trainingOf(key));
      await giveWeights(api, id);
      const finetunes = [{ id }, { id: await makeTuned(api, key) }];
      const showing = await generate(key, { user: 'bob', finetunes });
      await drawTask(api, showing.id);
      const other = await generate(key, { user: 'bob', finetunes: finetunes.slice(1) });
      if (isDeleted) await api.request('DELETE', `/v1/finetunes/${id}`, { key });

      expect(await erase()).toMatchObject({ generations: 1, pictures: 1, finetunes: isDeleted ? 0 : 1 });
      expect((await storedKeys(api)).filter((file) => file.includes(showing.id))).toEqual([]);
      const { body } = await api.request<{ id: string }[]>('GET', '/v1/sd/text-to-image', { key });
      expect(body.map((each) => each.id)).not.toContain(showing.id);
      expect(body.map((each) => each.id)).toContain(other.id);
    }
  });

  it('is of one account where it is named, and of an account that is there', async () => {
    const stranger = await api.createKey();
    for (const caller of [key, stranger]) await generate(caller, {});
    expect(await erase('--account', stranger.id)).toMatchObject({ account: stranger.id, generations: 1 });
    expect((await api.request<object[]>('GET', '/v1/sd/text-to-image', { key })).body).toHaveLength(1);
    expect((await api.request<object[]>('GET', '/v1/sd/text-to-image', { key: stranger })).body).toEqual([]);
    const around = surroundings();
    expect(await runErase(['--user', user, '--account', 'none'], around)).toBe(1);
    expect(around.said()).toBe('There is no account "none"; "npm run keys -- list" shows them.\n');
  });
});

describe('npm run audit', () => {
  it('tells who asked for what, and what became of it, also of deleted records', async () => {
    const [drawn, failed, canceled, removed, open] = [
      await generate(key, {}),
      await generate(key, {}),
      await generate(key, {}),
      await generate(key, {}),
      await generate(key, { user: null }),
    ].map(({ id }) => id);
    const settlement = { filtered: 2, flagged: [0], flaggedBy: ['safety checker'], served: { servedBy: 'shapes@1' } };
    await drawTask(api, drawn, 1, settlement);
    await failTask(api, failed, 'Out of paint.');
    await post(key, `/sd/text-to-image/${canceled}/cancel`, {});
    for (const id of [drawn, removed]) await api.request('DELETE', `/v1/sd/text-to-image/${id}`, { key });
    const lines = await audit();
    expect(lines.map(({ id, user, decision, reason }) => [id, user, decision, reason])).toEqual([
      [drawn, user, 'succeeded', null],
      [failed, user, 'failed', 'Out of paint.'],
      [canceled, user, 'canceled', null],
      [removed, user, 'deleted', null],
      [open, null, 'accepted', null],
    ]);
    expect(lines[0]).toMatchObject({
      key: key.id,
      key_name: 'shop',
      account: key.id,
      kind: 'generation',
      prompt: words,
    });
    expect(lines[0].model).toBe('sd1.5');
    expect(lines[0]).toMatchObject({ filtered: 2, flagged: 1, flagged_by: ['safety checker'], served_by: 'shapes@1' });
    expect(lines[4].decided_at).toBeNull();
    expect(await audit('--day', '2026-01-01')).toEqual([]);
    expect(await audit('--id', drawn)).toEqual([lines[0]]);
    expect(await audit('--user', user)).toEqual(lines.slice(0, 4));
    expect(await audit('--user', user, '--id', failed)).toEqual([lines[1]]);
  });

  it.each([
    [2, [], 'error: one of --day, --id, --picture and --user is needed'],
    [2, ['--account', 'none'], 'error: one of --day, --id, --picture and --user is needed'],
    [1, ['--user', 'ann', '--account', 'none'], 'There is no account "none"; "npm run keys -- list" shows them.'],
    [1, ['--picture', 'http://x/images/none.png'], 'nothing of the picture "http://x/images/none.png".'],
    [2, ['--day', '2026-02-30'], 'It must be a day as YYYY-MM-DD.'],
    [2, ['--day', '2126-01-01'], 'It has not begun yet, in UTC.'],
    [1, ['--user', 'nobody'], 'The audit trail has nothing of the user "nobody".'],
    [1, ['--id', '-none'], 'The audit trail has nothing of the record "-none".'],
  ])('ends with %d and one sentence for %j', async (code, args, sentence) => {
    const around = surroundings();
    expect([await runAudit(args, around), around.printed()]).toEqual([code, '']);
    expect(around.said()).toMatch(/^[^\n]+\n$/);
    expect(around.said()).toContain(sentence);
  });

  it('is of one account where it is named', async () => {
    const stranger = await api.createKey();
    const [mine, theirs] = [await generate(key, {}), await generate(stranger, {})];
    const found = async (...args: string[]) => (await audit('--user', user, ...args)).map(({ id }) => id);
    expect(await found()).toEqual([mine.id, theirs.id]);
    expect(await found('--account', stranger.id)).toEqual([theirs.id]);
  });

  it('knows the record of a picture by its URL while it is there, and of a URL of a bucket always', async () => {
    const { id: finetune } = await makeFinetune(api, key);
    const [prompt] = await makePrompts(api, key, finetune);
    const generation = await generate(key, {});
    for (const { id } of [prompt, generation]) await drawTask(api, id);
    const styles = [{ id: prompt.id, name: 'x' }];
    const { id: collection } = await post(key, '/prompts/collections', { name: 'x', styles });
    const get = async <T>(path: string) => (await api.request<T>('GET', `/v1${path}`, { key })).body;
    const [style] = await get<{ thumbnail: string }[]>(`/prompts/collections/${collection}/styles`);
    const drawn = await get<{ images: string[]; thumbnail: string }>(`/sd/text-to-image/${generation.id}`);
    const found = async (url: string) => (await audit('--picture', url)).map(({ id }) => id);
    expect(await found(drawn.images[0])).toEqual([generation.id]);
    expect(await found(drawn.thumbnail)).toEqual([generation.id]);
    expect(await found(style.thumbnail)).toEqual([prompt.id]);
    await api.request('DELETE', `/v1/sd/text-to-image/${generation.id}`, { key });
    expect(await found(`https://store.example/pictures/${generation.id}/1/0.png?x=1`)).toEqual([generation.id]);
    expect(await runAudit(['--picture', drawn.images[0]], surroundings())).toBe(1);
  });

  it('prints any number of entries, each once, and only as many as are read', async () => {
    await api.dataSource.query(
      `INSERT INTO audit_entries (at, owner_id, task_id, kind, model, decision)
       SELECT '2026-01-01T12:00:00Z'::timestamptz + n / 400 * interval '1 s', $1, n, 'generation', 'klein', 'succeeded'
       FROM generate_series(1, 2000) n`,
      [key.id],
    );
    const ids = (await audit('--day', '2026-01-01')).map(({ id }) => Number(id));
    expect(ids).toEqual(Array.from({ length: 2_000 }, (_, index) => index + 1));
    let writes = 0;
    const closing = new Writable({
      write: (_text, _encoding, done) => {
        writes++;
        done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
      },
    });
    const around = { ...surroundings(), stdout: closing };
    expect([await runAudit(['--day', '2026-01-01'], around), around.said(), writes]).toEqual([0, '', 1]);
  });

  it('keeps entries for as long as it is told', async () => {
    const { id } = await generate(key, {});
    await generate(key, {});
    await api.dataSource.query(`UPDATE audit_entries SET at = now() - interval '31 days' WHERE task_id = $1`, [id]);
    expect(await api.app.get(RetentionService).run()).toMatchObject({ entries: 1 });
    expect(await audit()).toHaveLength(1);
  });
});
