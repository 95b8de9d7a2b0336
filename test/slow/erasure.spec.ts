import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { loadConfig } from '@app/config';
import { runErase } from '../../apps/cli/src/erase-command';
import { writeBackup } from '../../apps/cli/src/backup/write-backup';
import sharp from 'sharp';
import type { TestKey } from '../support/api';
import { ofSuite } from '../support/of-suite';
import { smallModels } from '../support/quick-model';
import { receiversOfSuite } from '../support/receiver';
import { startTestService } from '../support/service';
import { robotPictures, trainingProcesses } from '../support/trainings';
import { until } from '../support/until';

// Beside other tests a training takes many times as long as alone.
const patienceMs = 540_000;
jest.setTimeout(2 * patienceMs);

const temporaryFolder = async () => {
  const path = mkdtempSync(join(tmpdir(), 'darkroom-erasure-'));
  return { path, close: async () => rmSync(path, { recursive: true }) };
};

describe('The erasure of a user for whom everything is at work', () => {
  const temporary = ofSuite(temporaryFolder);
  const backups = ofSuite(temporaryFolder);
  const env = () => ({
    ...{ AUDIT_DAYS: '30', MODELS_DIR: smallModels(), TMPDIR: temporary.path },
    ...{ PUBLIC_URL: 'http://localhost:3999', MAX_TRAININGS_PER_KEY: '2' },
  });
  const service = ofSuite(() => startTestService({ env: env() }));
  const startReceiver = receiversOfSuite();
  let key: TestKey;
  let webhook: string;
  beforeAll(async () => {
    key = await service.createKey();
    webhook = (await startReceiver()).url;
  });

  /** @param from a FROM clause and what follows it */
  const isAny = async (from: string, ...parameters: string[]): Promise<boolean> =>
    (await service.dataSource.query<unknown[]>(`SELECT FROM ${from} LIMIT 1`, parameters)).length > 0;
  const open = `tasks WHERE status IN ('queued', 'processing')`;

  type Work = () => Promise<{ id: string } | void>;

  /** A user in whose name one caller draws, edits and trains, all at once. */
  function userOf(name: string) {
    const prompt = `a portrait of ${name} and a cat`;
    const small = { user: name, webhook, width: 256, height: 256 };
    /** Of which nothing may be left: ids, addresses, and the name, which each prompt has too. */
    const traces = [name];
    /** The same of files: a part of each picture. */
    const pictures: Buffer[] = [];
    let isOver = false;

    async function post<T = { id: string }>(path: string, body: object, headers = {}): Promise<T> {
      const reply = await service.request<T>('POST', `/v1${path}`, { key, body, headers });
      if (reply.status !== 201) throw new Error(`${path}: ${reply.text}`);
      traces.push(...[reply.body].flat().map((made) => (made as { id: string }).id));
      return reply.body;
    }
    /** Like no other; what is stored of it is as it was encoded. */
    async function picture(): Promise<Buffer> {
      const raw = { width: 64, height: 64, channels: 3 } as const;
      const png = await sharp(randomBytes(64 * 64 * 3), { raw })
        .png()
        .toBuffer();
      pictures.push(png.subarray(-80, -40));
      return png;
    }
    async function upload(raw: Buffer): Promise<string> {
      const { body } = await service.request<{ id: string; url: string }>('POST', '/v1/uploads', { key, raw });
      traces.push(body.id, body.url.split('/').pop()!);
      return body.url;
    }
    async function ended({ id }: { id: string }): Promise<void> {
      await until(async () => isOver || !(await isAny(`${open} AND id = $1`, id)), `${id} has ended or is gone`);
    }

    const draw = async (more = {}) => {
      const body = { prompt, num_generations: 2, steps: 4, image: await upload(await picture()), ...small, ...more };
      return post('/sd/text-to-image', body, { 'idempotency-key': `${name}-${randomUUID()}` });
    };
    const train = async (more = {}) => {
      const images_url = [];
      for (const robot of robotPictures()) images_url.push(await upload(robot));
      const prompts = [{ prompt: `${prompt} with a face`, steps: 2 }];
      return post('/finetunes', { name: 'face', model: 'shapes', images_url, user: name, webhook, prompts, ...more });
    };
    const apply = async () => {
      const body = { name: 'robot', model: 'shapes' };
      const { body: finetune } = await service.request<{ id: string }>('POST', '/v1/finetunes', { key, body });
      const prompts = [{ prompt: `${prompt} as a robot`, steps: 4, user: name }];
      const [made] = await post<{ id: string }[]>(`/finetunes/${finetune.id}/prompts`, prompts);
      const styles = [{ id: made.id, name: 'a style' }];
      await service.request('POST', '/v1/prompts/collections', { key, body: { name: 'styles', styles } });
      return made;
    };
    const edit = async () => {
      const image_url = `data:image/png;base64,${(await picture()).toString('base64')}`;
      const body = { prompt, images: [{ image_url }], user: name, size: '256x256' };
      const reply = await service.request('POST', '/v1/images/edits', { key, body });
      // What is erased while it is waited for is not there.
      if (reply.status !== 200) expect(reply.text).toContain('was deleted');
    };
    const repeat = async (work: Work) => {
      while (!isOver) {
        const made = await work();
        if (made) await ended(made);
      }
    };
    return {
      name,
      ...{ traces, pictures, draw, train, apply, edit },
      /** Until it is stopped. */
      work: (...works: Work[]) => Promise.all(works.map((each) => repeat(each))),
      stop: () => (isOver = true),
    };
  }
  type User = ReturnType<typeof userOf>;

  async function erase({ name }: User): Promise<Record<string, number>> {
    let [printed, said] = ['', ''];
    const around = {
      env: service.env,
      stdout: { write: (text: string) => (printed += text) },
      stderr: { write: (text: string) => (said += text) },
    };
    expect([await runErase(['--user', name, '--json'], around), said]).toEqual([0, '']);
    return JSON.parse(printed) as Record<string, number>;
  }

  /** Usage keeps the ids of Fine-Tunes, which lead to nothing any more: of it only the first text is sought, the name. */
  const soughtIn = (place: string, texts: readonly string[]): readonly string[] =>
    /_usage(\.gz)?$/.test(place) ? texts.slice(0, 1) : texts;

  /** Rows of every table of every schema that have one of these texts. */
  async function rowsWith(texts: readonly string[]): Promise<string[]> {
    const tables = await service.dataSource.query<{ name: string }[]>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    );
    const found: string[] = [];
    for (const { name } of tables) {
      const rows = await service.dataSource.query<{ row: string }[]>(`SELECT t::text AS row FROM ${name} t`);
      const sought = soughtIn(name, texts);
      found.push(...rows.filter(({ row }) => sought.some((text) => row.includes(text))).map(({ row }) => name + row));
    }
    return found;
  }

  /** Files that have one of these texts in their path or their bytes, or a part of one of these pictures. */
  const filesWith = (folder: string, { traces, pictures }: User): string[] =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => {
      const file = join(folder, path);
      const bytes = statSync(file).isFile() ? readFileSync(file) : Buffer.alloc(0);
      const content = path.endsWith('.gz') ? gunzipSync(bytes) : bytes;
      return (
        [...soughtIn(path, traces), ...pictures].some((trace) => content.includes(trace)) ||
        traces.some((id) => path.includes(id))
      );
    });

  it('leaves nothing in tables, files, logs and backups, while others are drawn for', async () => {
    const [ann, bob] = ['ann@example.com', 'bob@example.com'].map(userOf);
    const works: Promise<unknown>[] = [];
    /** Waits until something of Ann's is there, as long as nothing fails. */
    const ofAnn = async (from: string): Promise<void> => {
      const found = () => isAny(`${from} AND task.end_user = $1`, ann.name);
      await Promise.race([...works, until(found, `there is of Ann: ${from}`, patienceMs)]);
    };
    await ann.train();
    await ofAnn('finetunes JOIN tasks task USING (id) WHERE weights_key IS NOT NULL');
    works.push(ann.work(ann.draw, ann.train, ann.apply, ann.edit), bob.work(bob.apply));
    await ofAnn('styles JOIN tasks task ON task.id = source_prompt_id WHERE thumbnail_key IS NOT NULL');
    await ofAnn(`webhook_deliveries sent JOIN tasks task ON task.id = task_id WHERE sent.status = 'delivered'`);
    await ofAnn('picture_uses JOIN tasks task ON task.id = task_id WHERE true');
    expect(filesWith(service.env.DATA_DIR, ann).length).toBeGreaterThan(10);
    expect((await rowsWith(ann.traces)).length).toBeGreaterThan(20);

    for (let round = 0; round < 2; round++) {
      await ofAnn('images JOIN tasks task ON task.id = task_id WHERE true');
      expect((await erase(ann)).pictures).toBeGreaterThan(0);
    }

    const large = { steps: 50, width: 512, height: 512 };
    // Requests stop, and both a drawing and a training are at work when the last of it is erased.
    ann.stop();
    const [drawn, trained] = [await ann.draw({ ...large, num_generations: 4 }), await ann.train({ steps: 5_000 })];
    for (const { id } of [drawn, trained]) await ofAnn(`tasks task WHERE id = '${id}' AND status = 'processing'`);
    expect(await erase(ann)).toMatchObject({ finetunes: expect.any(Number) as number });
    expect(await rowsWith(ann.traces)).toEqual([]);

    bob.stop();
    await Promise.all(works);
    await until(async () => !(await isAny(open)), 'all has ended');
    await until(async () => trainingProcesses(service.workers[0].pid).length === 0, 'nothing is trained');
    expect(await rowsWith(ann.traces)).toEqual([]);
    expect(filesWith(service.env.DATA_DIR, ann)).toEqual([]);
    expect(filesWith(temporary.path, ann)).toEqual([]);
    for (const { output } of [service.api, ...service.workers]) expect(output).not.toContain(ann.name);

    const folder = join(backups.path, 'after');
    await writeBackup(loadConfig(service.env), service.env.DATABASE_URL, folder);
    expect(filesWith(folder, ann)).toEqual([]);
    expect(filesWith(folder, bob).length).toBeGreaterThan(10);
  });
});
