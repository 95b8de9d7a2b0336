import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@app/config';
import type { ImageTaskStatus } from '@app/domain';
import { Collection, ImageTask, newIdentifier } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { FairTurns } from '@app/process';
import type { ImageStorage } from '@app/storage';
import { openImageStorage } from '@app/storage';
import type { EntityManager } from 'typeorm';
import { PicturesService } from '../../apps/api/src/files/pictures.service';
import type { Notifications } from '../../apps/api/src/http/notifications';
import { ThumbnailsListener } from '../../apps/api/src/files/thumbnails.listener';
import { ThumbnailsService } from '../../apps/api/src/files/thumbnails.service';
import type { RunningStorage } from '../support/back-ends';
import { startStorage } from '../support/back-ends';
import type { TestDatabase } from '../support/database';
import { pictureChildFile } from '../support/api';
import { createTestDatabase } from '../support/database';
import { insertFinetune, insertPicture, insertPrompt } from '../support/prompt-rows';
import { rowsRead } from '../support/rows-read';
import { until } from '../support/until';

describe('thumbnails of many owners', () => {
  const logger = new JsonLogger('test', 'silent');
  let database: TestDatabase;
  let manager: EntityManager;
  let folder: string;
  let running: RunningStorage;
  let storage: ImageStorage;
  let thumbnails: ThumbnailsService;
  let pictures: PicturesService;

  beforeAll(async () => {
    PicturesService.childFile = pictureChildFile;
    pictures = new PicturesService(logger);
    database = await createTestDatabase();
    manager = database.dataSource.manager;
    folder = await mkdtemp(join(tmpdir(), 'darkroom-turns-'));
    running = await startStorage(folder);
    storage = openImageStorage(loadConfig({ DATA_DIR: folder, ...running.env }));
  });
  beforeEach(async () => {
    await manager.query('TRUNCATE styles, collections, image_tasks, finetunes CASCADE');
    thumbnails = new ThumbnailsService(database.dataSource, storage, pictures, logger);
  });
  afterEach(() => jest.restoreAllMocks());
  afterAll(async () => {
    pictures.onApplicationShutdown();
    await running.close();
    await database.drop();
    await rm(folder, { recursive: true });
  });

  /** Styles of a new owner and one Prompt, whose picture exists if it `isDrawn`. */
  async function ownerOf(styles: number, { isDrawn = true } = {}): Promise<{ id: string; promptId: string }> {
    const id = newIdentifier();
    const { id: promptId } = await insertPrompt(manager, await insertFinetune(manager, id));
    if (isDrawn) await insertPicture(manager, storage, promptId, { width: 64, height: 64 });
    await insertStyles(id, [promptId], styles);
    return { id, promptId };
  }

  async function insertStyles(ownerId: string, promptIds: string[], each: number): Promise<void> {
    const collectionId = newIdentifier();
    await manager.insert(Collection, { id: collectionId, ownerId, name: 'c', createdAt: new Date() });
    await manager.query(
      `INSERT INTO styles (id, owner_id, collection_id, name, template, cfg, steps, source_prompt_id, created_at)
       SELECT substr(md5(random()::text), 1, 24), $1, $2, 's', '', 7, 20, prompt_id, now()
       FROM unnest($3::varchar[]) AS prompt_id, generate_series(1, $4)`,
      [ownerId, collectionId, promptIds, each],
    );
    await manager.query('ANALYZE styles');
  }

  async function count(ownerId: string, condition: string): Promise<number> {
    const [row] = await manager.query<{ count: number }[]>(
      `SELECT count(*)::integer FROM styles WHERE owner_id = $1 AND ${condition}`,
      [ownerId],
    );
    return row.count;
  }
  const made = (ownerId: string) => count(ownerId, 'thumbnail_key IS NOT NULL');

  it('are made in the first round for one owner, however many another has waiting', async () => {
    const many = await ownerOf(2000);
    const one = await ownerOf(1);
    const [sum, ofMany, ofOne] = [await thumbnails.makeMissing(), await made(many.id), await made(one.id)];
    expect(ofOne).toBe(1);
    expect(ofMany).toBe(sum - 1);
    expect(ofMany).toBeGreaterThan(10);
    expect(ofMany).toBeLessThan(200);
  });

  it("are chosen without reading one owner's backlog, drawn or not", async () => {
    const hostile = await ownerOf(20_000, { isDrawn: false });
    const lost = await ownerOf(20_000, { isDrawn: false });
    await manager.query('DELETE FROM image_tasks WHERE id = $1', [lost.promptId]);
    const one = await ownerOf(3);
    const read = await rowsRead(database.dataSource, 'styles', () => thumbnails.makeMissing());
    expect(read).toBeLessThan(50);
    expect([await made(hostile.id), await made(one.id)]).toEqual([0, 3]);
    // Styles that cannot get a thumbnail are removed over time.
    expect(await count(lost.id, 'source_prompt_id IS NULL')).toBe(1000);
    await thumbnails.makeMissing();
    expect(await count(lost.id, 'source_prompt_id IS NULL')).toBe(2000);
  });

  it("are made in a later round if the owner's other Prompts fill the first", async () => {
    const { id, promptId } = await ownerOf(0);
    const waiting = Array.from({ length: 2000 }, (_, n) => `${n}`.padStart(24, '0'));
    await manager.query(
      `INSERT INTO image_tasks SELECT (json_populate_record(task, json_build_object(
         'id', waiting, 'status', 'queued', 'seq', NULL))).* FROM image_tasks AS task, unnest($1::varchar[]) AS waiting WHERE task.id = $2`,
      [waiting, promptId],
    );
    await insertStyles(id, [...waiting, promptId], 1);
    const rounds = [await thumbnails.makeMissing(), await thumbnails.makeMissing(), await thumbnails.makeMissing()];
    expect(rounds.reduce((sum, each) => sum + each)).toBe(1);
  });

  it('are chosen for more owners than one round covers, round after round', async () => {
    for (let n = 0; n < 10; n++) await ownerOf(1);
    const waiting = Array.from({ length: 300 }, newIdentifier);
    for (const id of waiting) await manager.insert(Collection, { id, ownerId: id, name: 'c', createdAt: new Date() });
    const { promptId } = await ownerOf(0, { isDrawn: false });
    await manager.query(
      `INSERT INTO styles (id, owner_id, collection_id, name, template, cfg, steps, source_prompt_id, created_at)
       SELECT id, id, id, 's', '', 7, 20, $2, now() FROM unnest($1::varchar[]) AS id`,
      [waiting, promptId],
    );
    expect((await thumbnails.makeMissing()) + (await thumbnails.makeMissing())).toBe(10);
  });

  /** Makes the storage's writes wait. @returns lets them all go on */
  function holdWrites(): () => void {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const write = storage.write.bind(storage);
    jest.spyOn(storage, 'write').mockImplementation(async (...object) => {
      await released;
      return write(...object);
    });
    return release;
  }

  async function styleIds(ownerId: string): Promise<string[]> {
    return (await manager.query<{ id: string }[]>('SELECT id FROM styles WHERE owner_id = $1', [ownerId])).map(
      ({ id }) => id,
    );
  }

  it('are made of others while an owner has as many waiting as it may', async () => {
    const [hostile, other] = [await ownerOf(0), await ownerOf(0)].sort((a, b) => (a.id < b.id ? -1 : 1));
    await insertStyles(hostile.id, [hostile.promptId], 110);
    await insertStyles(other.id, [other.promptId], 1);
    const release = holdWrites();
    let ended = 0;
    const requests = (await styleIds(hostile.id)).map((id) => thumbnails.makeForStyles([id]).then(() => ended++));
    await until(() => Promise.resolve(ended === 8), '2 are being made, 100 wait, and 8 are left for the sweeper');
    const turns = jest.spyOn(FairTurns.prototype, 'run');
    const round = thumbnails.makeMissing();
    round.catch(() => undefined);
    const turn = () => turns.mock.calls.some(([owner]) => owner === other.id);
    await Promise.race([round, until(() => Promise.resolve(turn()), 'the other owner has its turn')]);
    release();
    await Promise.all([round, ...requests]);
    expect(await made(other.id)).toBe(1);
  });

  it('are no longer made when the process ends', async () => {
    const { id } = await ownerOf(5);
    const end = new AbortController();
    const write = storage.write.bind(storage);
    jest.spyOn(storage, 'write').mockImplementation((...object) => {
      end.abort();
      return write(...object);
    });
    expect([await thumbnails.makeMissing(end.signal), await made(id)]).toEqual([1, 1]);
  });

  it('are made for the last of more deleted Prompts than one statement reads', async () => {
    const { id, promptId } = await ownerOf(1);
    const unknown = Array.from({ length: 1000 }, () => ({ ownerId: id, promptId: newIdentifier() }));
    await thumbnails.makeBeforeDeletion([...unknown, { ownerId: id, promptId }]);
    expect(await made(id)).toBe(1);
  });

  describe('whose Prompt is being drawn', () => {
    async function awaited(styles: number): Promise<{ id: string; promptId: string }> {
      const owner = await ownerOf(styles, { isDrawn: false });
      await become('processing', owner.promptId);
      await thumbnails.makeForStyles(await styleIds(owner.id));
      return owner;
    }
    const become = (status: ImageTaskStatus, promptId: string) => manager.update(ImageTask, promptId, { status });
    async function draw(promptId: string): Promise<void> {
      await insertPicture(manager, storage, promptId, { width: 64, height: 64 });
      await become('succeeded', promptId);
    }

    it('wait until it has terminated, and no longer', async () => {
      const [drawn, failed] = [await awaited(1), await awaited(1)];
      await thumbnails.makeForPrompt(drawn.promptId);
      await draw(drawn.promptId);
      await become('failed', failed.promptId);
      for (const { promptId } of [drawn, failed]) await thumbnails.makeForPrompt(promptId);
      expect([await made(drawn.id), await made(failed.id)]).toEqual([1, 0]);
      const turns = jest.spyOn(FairTurns.prototype, 'run');
      for (const { promptId } of [drawn, failed]) await thumbnails.makeForPrompt(promptId);
      expect(turns).not.toHaveBeenCalled();
    });

    it('are made for a few Prompts at a time', async () => {
      const owners = await Promise.all(Array.from({ length: 12 }, () => awaited(1)));
      for (const { promptId } of owners) await draw(promptId);
      const release = holdWrites();
      const reads = jest.spyOn(manager, 'existsBy');
      const all = owners.map(({ promptId }) => thumbnails.makeForPrompt(promptId));
      await until(() => Promise.resolve(jest.mocked(storage).write.mock.calls.length === 2), 'two are written');
      expect(reads).toHaveBeenCalledTimes(4);
      release();
      await Promise.all(all);
      expect(await Promise.all(owners.map(({ id }) => made(id)))).toEqual(owners.map(() => 1));
    });

    it('are left when the process ends, with what is told of afterwards', async () => {
      const [one, late] = [await awaited(5), await awaited(1)];
      let tell: (promptId: string) => void = () => undefined;
      const notifications = { on: (_channel: string, handle: typeof tell) => (tell = handle) };
      const listener = new ThumbnailsListener(thumbnails, notifications as unknown as Notifications);
      await draw(one.promptId);
      await draw(late.promptId);
      const release = holdWrites();
      tell(one.promptId);
      await until(() => Promise.resolve(jest.mocked(storage).write.mock.calls.length === 1), 'one is written');
      const ended = listener.beforeApplicationShutdown();
      tell(late.promptId);
      release();
      await ended;
      expect([await made(one.id), await made(late.id)]).toEqual([1, 0]);
    });
  });
});
