import { createHash } from 'node:crypto';
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Config } from '@app/config';
import { assertKnown, assertMigrated, dataSourceOptions, dumpTables, loadTables } from '@app/database';
import { JsonLogger } from '@app/observability';
import { IMAGE_STORAGE, type ImageStorage, openImageStorage } from '@app/storage';
import { Trainings, weightsFolderOf } from '@app/tasks';
import { Client } from 'pg';
import type { INestApplication } from '@nestjs/common';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { UploadedPicturesSweeper } from '../../apps/api/src/uploads/uploaded-pictures.sweeper';
import { TrainingStore } from '../../apps/inference/src/training/training-store';
import { createApi } from '../../apps/api/src/create-api';
import { VerifiedBackup } from '../../apps/cli/src/backup/backup-folder';
import { assertEmptyPlace, restoreBackup } from '../../apps/cli/src/backup/restore-backup';
import { writeBackup } from '../../apps/cli/src/backup/write-backup';
import { request, startTestApi, type TestApi, type TestKey } from '../support/api';
import { itOnce } from '../support/back-ends';
import { createEmptyDatabase, type TestDatabase } from '../support/database';
import { drawTask, makeFinetune } from '../support/factories';
import { smallPicture } from '../support/small-picture';
import { bytesOf, keysIn } from '../support/stored-objects';

/** Every row of every table of ours, as text. */
async function rowsOf(databaseUrl: string): Promise<Record<string, string[]>> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.tables
        WHERE table_schema = 'public' AND table_name <> 'migrations'`,
    );
    const all: Record<string, string[]> = {};
    for (const { name } of tables) {
      const { rows } = await client.query<{ row: string }>(`SELECT t::text AS row FROM "${name}" t ORDER BY row`);
      all[name] = rows.map(({ row }) => row);
    }
    return all;
  } finally {
    await client.end();
  }
}

// Tabs, line ends and backslashes have a meaning in the format of COPY.
const prompt = 'a "star"\\N,\ton\n\\. ünïcode ★ {}';
const path = '/v1/sd/text-to-image';
const PUBLIC_URL = 'https://darkroom.example';

/** A migration that comes after the backup, and changes its rows. */
class Later1996100000000 implements MigrationInterface {
  name = 'Later1996100000000';
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE api_keys ADD mood text DEFAULT 'has changed'`);
  }
  async down(): Promise<void> {}
}

describe('A backup', () => {
  let api: TestApi;
  let key: TestKey;
  let place: string;
  let folder: string;
  let drawn: string;
  let waiting: string;
  /** A picture that the waiting one draws from. */
  let upload: { id: string; url: string };
  /** A Fine-Tune that was trained, and one that is being trained. */
  let [trained, half]: string[] = [];
  let target: Pick<TestDatabase, 'url' | 'drop'>;
  let targetConfig: Config;

  const create = async (body: object): Promise<string> => {
    const reply = await api.request<{ id: string }>('POST', path, { key, body });
    if (reply.status !== 201) throw new Error(reply.text);
    return reply.body.id;
  };

  /** Weights that a training made, and a state that one goes on from; neither backup nor storage look into them. */
  const weightsOfTraining = Buffer.from('weights of a training');
  const state = Buffer.from('a training after 50 steps');
  const train = async (): Promise<string> => {
    const images_url = Array.from({ length: 4 }, (_, i) => `https://pictures.example/${i}.png`);
    const { id } = await makeFinetune(api, key, { model: 'shapes', images_url });
    return id;
  };
  const trainingStore = (app: INestApplication, storage: ImageStorage): TrainingStore =>
    new TrainingStore(storage, app.get(DataSource), app.get(Trainings), new JsonLogger('inference', 'silent'));
  /** Acts as a worker on both. */
  const work = async (): Promise<void> => {
    const [trainings, storage] = [api.app.get(Trainings), api.app.get<ImageStorage>(IMAGE_STORAGE)];
    const task = (await trainings.claim({ undrawable: true }))!;
    expect(task.id).toBe(trained);
    const file = {
      kind: 'lora',
      vectors: null,
      note: null,
      unmatched: 0,
      hash: 'abc',
      bytes: weightsOfTraining.length,
    } as const;
    const weights = { ...file, scale: 1, base: 'shapes@abc', key: `${weightsFolderOf(trained)}/1-abc.safetensors` };
    await storage.write(weights.key, weightsOfTraining);
    expect(await trainings.settle(task, { weights, computeSeconds: 60, note: null })).toBe(true);
    const next = (await trainings.claim({ undrawable: true }))!;
    expect(next.id).toBe(half);
    const at = { round: 0, step: 50, steps: 800, loss: 0.1, computeMs: 1000 };
    await trainingStore(api.app, storage).keep(next, { ...at, checkpoint: state }, 'abc');
  };

  beforeAll(async () => {
    [api, place] = [await startTestApi({ PUBLIC_URL }), mkdtempSync(join(tmpdir(), 'darkroom-backup-'))];
    key = await api.createKey();
    drawn = await create({ prompt, metadata: { z: 1, a: ['\\', null] } });
    await drawTask(api, drawn);
    const raw = await smallPicture('#0f0', 30, 20);
    upload = (await api.request<typeof upload>('POST', '/v1/uploads', { key, raw })).body;
    waiting = await create({ prompt: 'a ring', webhook: 'http://127.0.0.1:9/hook', image: upload.url });
    await makeFinetune(api, key, { title: 'Robots' });
    [trained, half] = [await train(), await train()];
    await work();
    writeFileSync(join(api.config.dataDir, 'api-key'), `${key.token}\n`);
    folder = join(place, 'backup');
    await writeBackup(api.config, api.config.databaseUrl!, folder);
  });
  afterAll(async () => {
    await api.close();
    rmSync(place, { recursive: true });
  });

  beforeEach(async () => {
    target = await createEmptyDatabase();
    const dataDir = mkdtempSync(join(place, 'data-'));
    // Storage of any kind is restored into files here.
    const { s3: _, ...others } = api.config;
    targetConfig = { ...others, storage: 'file', queueBackend: 'postgres', databaseUrl: target.url, dataDir };
  });
  afterEach(() => target.drop());

  /** A copy of the backup that a test may spoil. */
  const copied = (): string => {
    const copy = mkdtempSync(join(place, 'copy-'));
    cpSync(folder, copy, { recursive: true });
    return copy;
  };

  it('has every row, every file and the key, and a service goes on with them', async () => {
    const modelsDir = mkdtempSync(join(place, 'models-'));
    const backup = await VerifiedBackup.open(folder);
    const report = await restoreBackup({ ...targetConfig, modelsDir }, target.url, backup);
    const rows = await rowsOf(target.url);
    expect(rows).toEqual(await rowsOf(api.config.databaseUrl!));
    expect(report.rows).toBe(Object.values(rows).flat().length);
    expect(Object.keys(rows).length).toBeGreaterThan(15);
    expect(report.missing_models.map(({ name }) => name)).toEqual(['shapes']);

    const [from, to] = [openImageStorage(api.config), openImageStorage(targetConfig)];
    const keys = (await keysIn(to)).sort();
    expect(keys).toEqual(expect.arrayContaining([`${drawn}/1/0.png`, `uploads/${upload.id}.png`]));
    expect(keys).toEqual((await keysIn(from)).filter((name) => !name.startsWith('health/')));
    for (const name of keys) expect((await bytesOf(to, name)).equals(await bytesOf(from, name))).toBe(true);
    expect(readFileSync(join(targetConfig.dataDir, 'api-key'), 'utf8')).toBe(`${key.token}\n`);

    const app = await createApi(targetConfig);
    try {
      await app.listen(0, '127.0.0.1');
      const url = await app.getUrl();
      const record = await request<Record<string, unknown>>(url, 'GET', `${path}/${drawn}`, { key });
      expect(record.text).toBe((await api.request('GET', `${path}/${drawn}`, { key })).text);
      expect(record.body).toMatchObject({ prompt, status: 'succeeded' });
      expect((await request(url, 'GET', `${path}/${waiting}`, { key })).body).toMatchObject({
        status: 'queued',
        image: upload.url,
      });
      // It is in use here too: no sweep takes it.
      await app.get(UploadedPicturesSweeper).sweep(Date.now() + 48 * 3_600_000);
      expect((await fetch(url + new URL(upload.url).pathname)).status).toBe(200);
      expect((await request(url, 'GET', `/v1/uploads/${upload.id}`, { key })).body).toMatchObject({ url: upload.url });
      const headersOf = { authorization: `Bearer ${key.token}` };
      const weights = await fetch(`${url}/v1/finetunes/${trained}/weights`, { headers: headersOf });
      expect(Buffer.from(await weights.arrayBuffer()).equals(weightsOfTraining)).toBe(true);
      const goesOn = await trainingStore(app, to).latest(half, 'abc');
      expect(goesOn).toMatchObject({ round: 0, step: 50 });
      expect(goesOn!.checkpoint).toEqual(state);
      // A position in a list stays valid, and a new record is the newest.
      const { headers } = await api.request('GET', `${path}?limit=1`, { key });
      const next = /limit=1&[^>]+/.exec(headers.get('link') ?? '')?.[0];
      const rest = await request<{ id: string }[]>(url, 'GET', `${path}?${next}`, { key });
      expect(rest.body.map(({ id }) => id)).toEqual([drawn]);
      const added = await request<{ id: string }>(url, 'POST', path, { key, body: { prompt: 'a cross' } });
      const newest = await request<{ id: string }[]>(url, 'GET', `${path}?limit=1`, { key });
      expect(newest.body[0].id).toBe(added.body.id);
    } finally {
      await app.close();
    }
  });

  itOnce('has the rows of one moment, whatever is written while it is made', async () => {
    const other = new Client({ connectionString: api.config.databaseUrl });
    await other.connect();
    const dumped = new Map<string, Buffer>();
    try {
      const before = await rowsOf(api.config.databaseUrl!);
      const contents = await dumpTables(api.config.databaseUrl!, async (table, rows) => {
        dumped.set(table, await buffer(rows));
        await other.query(`UPDATE drawings SET prompt = 'later'`);
        await other.query('DELETE FROM webhook_deliveries');
      });
      await loadTables(target.url, contents, (table) => Readable.from([dumped.get(table)!]));
      const { rows } = await other.query<{ prompt: string }>('SELECT DISTINCT prompt FROM drawings');
      expect(rows).toEqual([{ prompt: 'later' }]);
      expect(await rowsOf(target.url)).toEqual(before);
    } finally {
      await other.end();
    }
  });

  itOnce('of an older version gets the tables of this one', async () => {
    const dumped = new Map<string, Buffer>();
    const contents = await dumpTables(
      api.config.databaseUrl!,
      async (table, rows) => void dumped.set(table, await buffer(rows)),
    );
    const migrations = dataSourceOptions(target.url).migrations as (new () => MigrationInterface)[];
    migrations.push(Later1996100000000);
    try {
      await loadTables(target.url, contents, (table) => Readable.from([dumped.get(table)!]));
      await expect(assertMigrated(target.url)).resolves.toBeUndefined();
      const { api_keys: keys } = await rowsOf(target.url);
      expect(keys[0]).toContain('has changed');
    } finally {
      migrations.pop();
    }
  });

  itOnce('is refused where there is something already, and changes nothing there', async () => {
    const backup = await VerifiedBackup.open(folder);
    await expect(assertEmptyPlace(targetConfig)).resolves.toBeUndefined();
    const used = api.config;
    await expect(restoreBackup({ ...targetConfig }, used.databaseUrl!, backup)).rejects.toThrow(
      /The database has tables already/,
    );
    await expect(assertEmptyPlace({ ...targetConfig, dataDir: used.dataDir })).rejects.toThrow(/has a file api-key/);
    await expect(assertEmptyPlace({ ...used, databaseUrl: undefined })).rejects.toThrow(/is not empty: .*DATA_DIR/);
    await openImageStorage(targetConfig).write('x/1/0.png', Buffer.from('x'));
    await expect(assertEmptyPlace(targetConfig)).rejects.toThrow(/The storage has files already \(x\/1\/0\.png\)/);
    expect(Object.keys(await rowsOf(target.url))).toEqual([]);
    await expect(writeBackup(used, used.databaseUrl!, folder)).rejects.toThrow(/is not empty: name a new one/);
  });

  itOnce('is refused if a file is damaged, missing or was never finished', async () => {
    const { api_keys } = await rowsOf(api.config.databaseUrl!);
    expect(api_keys.length).toBeGreaterThan(0);
    const spoilt = async (spoil: (copy: string) => void): Promise<string> => {
      const copy = copied();
      spoil(copy);
      return VerifiedBackup.open(copy).then(
        () => 'accepted',
        (error: Error) => error.message.replace(copy, 'X'),
      );
    };
    const picture = `files/${drawn}/1/0.png`;
    await expect(spoilt((copy) => appendFileSync(join(copy, picture), 'x'))).resolves.toBe(
      `The backup X is damaged: a file does not have the checksum of SHA256SUMS, the first is ${picture}. Nothing was changed.`,
    );
    await expect(spoilt((copy) => rmSync(join(copy, picture)))).resolves.toContain(`the first is ${picture}`);
    await expect(spoilt((copy) => appendFileSync(join(copy, 'manifest.json'), ' '))).resolves.toContain(
      'the first is manifest.json',
    );
    await expect(spoilt((copy) => rmSync(copy, { recursive: true }))).resolves.toMatch(
      /^There is no folder X: the argument <folder>/,
    );
    await expect(spoilt((copy) => rmSync(join(copy, 'SHA256SUMS')))).resolves.toMatch(/^X is no complete backup/);
    const lines = readFileSync(join(folder, 'SHA256SUMS'), 'utf8').split('\n');
    const put = (text: string) => (copy: string) => writeFileSync(join(copy, 'SHA256SUMS'), text);
    await expect(spoilt(put(lines.slice(0, 3).join('\n')))).resolves.toContain('SHA256SUMS lacks files');
    await expect(spoilt(put(lines.slice(1).join('\n')))).resolves.toContain('SHA256SUMS lacks files');
    await expect(spoilt(put(`${'0'.repeat(64)}  ../x\n`))).resolves.toContain('SHA256SUMS cannot be read');
    await expect(spoilt(() => undefined)).resolves.toBe('accepted');
  });

  itOnce('of a newer version or format is refused', async () => {
    const { manifest } = await VerifiedBackup.open(folder);
    const { database } = manifest;
    const newer = { ...database, migrations: [...database.migrations, 'Future2999000000000'] };
    expect(() => assertKnown(newer)).toThrow(/made by another version of Darkroom \(Future2999000000000/);
    await expect(loadTables(target.url, newer, () => Readable.from([]))).rejects.toThrow(/another version/);
    const copy = copied();
    const text = JSON.stringify({ ...manifest, format: 2 });
    writeFileSync(join(copy, 'manifest.json'), text);
    const sums = readFileSync(join(copy, 'SHA256SUMS'), 'utf8').replace(
      /.{64} {2}manifest\.json/,
      `${createHash('sha256').update(text).digest('hex')}  manifest.json`,
    );
    writeFileSync(join(copy, 'SHA256SUMS'), sums);
    await expect(VerifiedBackup.open(copy)).rejects.toThrow(
      /has format 2, and this version of Darkroom reads format 1/,
    );
  });
});
