import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@app/config';
import { Collection, newIdentifier } from '@app/domain';
import { JsonLogger } from '@app/observability';
import type { ImageStorage } from '@app/storage';
import { openImageStorage } from '@app/storage';
import type { EntityManager } from 'typeorm';
import { PicturesService } from '../../apps/api/src/pictures/pictures.service';
import { ThumbnailsService } from '../../apps/api/src/thumbnails/thumbnails.service';
import type { RunningStorage } from '../support/back-ends';
import { startStorage } from '../support/back-ends';
import type { TestDatabase } from '../support/database';
import { pictureChildFile } from '../support/api';
import { createTestDatabase } from '../support/database';
import { insertFinetune, insertPicture, insertPrompt } from '../support/prompt-rows';
import { rowsRead } from '../support/rows-read';

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
});
