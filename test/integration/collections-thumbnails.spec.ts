import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@app/config';
import type { Finetune } from '@app/domain';
import { Collection, ImageTask, newIdentifier, Style } from '@app/domain';
import { JsonLogger } from '@app/observability';
import type { ImageStorage, StoredObject } from '@app/storage';
import { openImageStorage } from '@app/storage';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import sharp from 'sharp';
import type { EntityManager } from 'typeorm';
import { PicturesService } from '../../apps/api/src/files/pictures.service';
import { ThumbnailsService } from '../../apps/api/src/files/thumbnails.service';
import { ThumbnailsSweeper } from '../../apps/api/src/files/thumbnails.sweeper';
import type { RunningStorage } from '../support/back-ends';
import { startStorage } from '../support/back-ends';
import type { TestDatabase } from '../support/database';
import { pictureChildFile } from '../support/api';
import { createTestDatabase } from '../support/database';
import { insertFinetune, insertPicture, insertPrompt, storedStyle } from '../support/prompt-rows';

/** Counts writes, and fails them on demand as a full disk does. */
class WatchedStorage implements ImageStorage {
  readonly written: string[] = [];
  full = false;
  /** How many of the next writes fail. */
  failures = 0;

  constructor(private readonly storage: ImageStorage) {}

  async write(key: string, data: Uint8Array | Readable): Promise<void> {
    if (this.full || this.failures-- > 0) throw new Error('no space left on device');
    await this.storage.write(key, data);
    this.written.push(key);
  }

  adopt(key: string, path: string): Promise<void> {
    return this.storage.adopt(key, path);
  }

  read(key: string): ReturnType<ImageStorage['read']> {
    return this.storage.read(key);
  }

  removeAll(prefix: string): Promise<void> {
    return this.storage.removeAll(prefix);
  }

  list(prefix?: string): AsyncIterable<StoredObject> {
    return this.storage.list(prefix);
  }

  localPath(key: string): Promise<string> {
    return this.storage.localPath(key);
  }

  check(): Promise<void> {
    return this.storage.check();
  }
}

describe('thumbnails of Styles', () => {
  const logger = new JsonLogger('test', 'silent');
  let database: TestDatabase;
  let manager: EntityManager;
  let folder: string;
  let running: RunningStorage;
  let storage: WatchedStorage;
  let thumbnails: ThumbnailsService;
  let pictures: PicturesService;
  let finetune: Finetune;

  beforeAll(async () => {
    PicturesService.childFile = pictureChildFile;
    pictures = new PicturesService(logger);
    database = await createTestDatabase();
    manager = database.dataSource.manager;
    folder = await mkdtemp(join(tmpdir(), 'darkroom-thumbnails-'));
  });

  beforeEach(async () => {
    await manager.query('TRUNCATE styles, collections, image_tasks, finetunes CASCADE');
    const dataDir = await mkdtemp(join(folder, 'data-'));
    running = await startStorage(dataDir);
    storage = new WatchedStorage(openImageStorage(loadConfig({ DATA_DIR: dataDir, ...running.env })));
    thumbnails = service(storage);
    finetune = await insertFinetune(manager, newIdentifier());
  });

  afterEach(() => running.close());

  afterAll(async () => {
    pictures.onApplicationShutdown();
    await database.drop();
    await rm(folder, { recursive: true });
  });

  const service = (from: ImageStorage) => new ThumbnailsService(database.dataSource, from, pictures, logger);

  /** Styles made from one new Prompt. */
  async function stylesOf(promptId: string, count = 1): Promise<string[]> {
    const { ownerId } = finetune;
    const collectionId = newIdentifier();
    const createdAt = new Date();
    await manager.insert(Collection, { id: collectionId, ownerId, name: 'c', createdAt });
    const ids = Array.from({ length: count }, newIdentifier);
    const controls = { template: '{finetune}', cfg: 7, steps: 20, sourcePromptId: promptId };
    const rows = ids.map((id) => ({ id, ownerId, collectionId, name: 's', createdAt, ...controls }));
    await manager.insert(Style, rows);
    return ids;
  }

  const prompt = async () => (await insertPrompt(manager, finetune)).id;
  const picture = (promptId: string, options?: Parameters<typeof insertPicture>[3]) =>
    insertPicture(manager, storage, promptId, options);
  const thumbnail = async (styleId: string) => {
    const { thumbnailKey } = await storedStyle(manager, styleId);
    const object = thumbnailKey && (await storage.read(thumbnailKey));
    return object ? sharp(await buffer(object.stream)) : undefined;
  };

  describe('makeMissing', () => {
    it('waits for the picture, and then makes a thumbnail with its own token', async () => {
      const source = await prompt();
      const ids = await stylesOf(source, 2);
      expect(await thumbnails.makeMissing()).toBe(0);
      await picture(source, { background: '#204060' });
      expect(await thumbnails.makeMissing()).toBe(2);
      expect(await thumbnails.makeMissing()).toBe(0);
      const rows = await Promise.all(ids.map((id) => storedStyle(manager, id)));
      expect(rows.map(({ thumbnailKey }) => thumbnailKey)).toEqual(ids.map((id) => `thumbnails/${id}.png`));
      expect(new Set(rows.map(({ thumbnailToken }) => thumbnailToken)).size).toBe(2);
      const { channels } = await (await thumbnail(ids[0]))!.stats();
      expect(channels.map(({ mean }) => Math.round(mean))).toEqual([0x20, 0x40, 0x60]);
    });

    it.each([
      [512, 768],
      [768, 512],
      [64, 64],
    ])('makes 256 x 256 pixels of %i x %i', async (width, height) => {
      const source = await prompt();
      const [id] = await stylesOf(source);
      await picture(source, { width, height });
      await thumbnails.makeMissing();
      expect(await (await thumbnail(id))?.metadata()).toMatchObject({ width: 256, height: 256, format: 'png' });
    });

    it('makes each once when several processes run at the same time', async () => {
      const ids: string[] = [];
      for (let n = 0; n < 12; n++) {
        const source = await prompt();
        ids.push(...(await stylesOf(source)));
        await picture(source);
      }
      storage.written.length = 0;
      const counts = await Promise.all([storage, storage, storage].map((each) => service(each).makeMissing()));
      expect(counts.reduce((sum, count) => sum + count)).toBe(ids.length);
      expect(storage.written.sort()).toEqual(ids.map((id) => `thumbnails/${id}.png`).sort());
    });

    it('repeats what a crash interrupted', async () => {
      const source = await prompt();
      const [id] = await stylesOf(source);
      await picture(source);
      await storage.write(`thumbnails/${id}.png`, Buffer.from('half a fi'));
      await thumbnails.makeMissing();
      expect(await (await thumbnail(id))?.metadata()).toMatchObject({ width: 256 });
    });

    it('retries after a failure of the storage', async () => {
      const source = await prompt();
      const [id] = await stylesOf(source);
      await picture(source);
      storage.full = true;
      expect(await thumbnails.makeMissing()).toBe(0);
      storage.full = false;
      expect(await thumbnails.makeMissing()).toBe(1);
      expect((await storedStyle(manager, id)).thumbnailKey).not.toBeNull();
    });

    it('gives up on a picture that is lost or unreadable, and continues with the others', async () => {
      const [lost, broken, good] = [await prompt(), await prompt(), await prompt()];
      const ids = [...(await stylesOf(lost)), ...(await stylesOf(broken)), ...(await stylesOf(good))];
      await storage.removeAll((await picture(lost)).storageKey);
      await picture(broken, { bytes: Buffer.from('no picture') });
      await picture(good);
      expect(await thumbnails.makeMissing()).toBe(1);
      const rows = await Promise.all(ids.map((id) => storedStyle(manager, id)));
      expect(rows.map(({ sourcePromptId }) => sourcePromptId)).toEqual([null, null, good]);
    });

    it('gives up on a Prompt that was deleted, failed or was canceled, and waits for one that is being drawn', async () => {
      const sources = [await prompt(), await prompt(), await prompt(), await prompt()];
      const ids = (await Promise.all(sources.map((source) => stylesOf(source)))).flat();
      const [gone, failed, canceled, drawing] = sources;
      await manager.delete(ImageTask, { id: gone });
      await manager.update(ImageTask, { id: failed }, { status: 'failed' });
      await manager.update(ImageTask, { id: canceled }, { status: 'canceled' });
      await manager.update(ImageTask, { id: drawing }, { status: 'processing' });
      await thumbnails.makeMissing();
      const rows = await Promise.all(ids.map((id) => storedStyle(manager, id)));
      expect(rows.map(({ sourcePromptId }) => sourcePromptId)).toEqual([null, null, null, drawing]);
    });
  });

  describe('makeBeforeDeletion', () => {
    const remove = async (promptId: string): Promise<void> => {
      await thumbnails.makeBeforeDeletion([{ ownerId: finetune.ownerId, promptId }]);
      await manager.delete(ImageTask, { id: promptId });
    };

    it('gives every Style a thumbnail when its Prompt is deleted', async () => {
      const source = await prompt();
      const ids = await stylesOf(source, 3);
      await picture(source);
      await remove(source);
      await storage.removeAll(source);
      for (const id of ids) expect(await (await thumbnail(id))?.metadata()).toMatchObject({ width: 256 });
    });

    it('tries all of them once, also behind a hundred of one Prompt that fail for a passing reason', async () => {
      const [first, second] = [await prompt(), await prompt()];
      const failing = await stylesOf(first, 101);
      const [other] = await stylesOf(second);
      await Promise.all([picture(first), picture(second)]);
      storage.failures = 100;
      await thumbnails.makeBeforeDeletion([first, second].map((promptId) => ({ ownerId: finetune.ownerId, promptId })));
      const made = await Promise.all(
        [...failing, other].map(async (id) => (await storedStyle(manager, id)).thumbnailKey),
      );
      expect(made.flatMap((key, place) => (key === null ? [] : [place]))).toEqual([100, 101]);
    });

    it('ends in time, and leaves the other Styles without one', async () => {
      const source = await prompt();
      const [id] = await stylesOf(source);
      await picture(source);
      await thumbnails.makeBeforeDeletion([{ ownerId: finetune.ownerId, promptId: source }], 0);
      expect((await storedStyle(manager, id)).thumbnailKey).toBeNull();
      await manager.delete(ImageTask, { id: source });
    });

    it('does not prevent the deletion when there is no picture or no space', async () => {
      const [empty, drawn] = [await prompt(), await prompt()];
      const ids = [...(await stylesOf(empty)), ...(await stylesOf(drawn))];
      await picture(drawn);
      storage.full = true;
      await remove(empty);
      await remove(drawn);
      storage.full = false;
      expect(await thumbnails.makeMissing()).toBe(0);
      for (const id of ids) expect((await storedStyle(manager, id)).thumbnailKey).toBeNull();
    });
  });

  describe('makeForStyles', () => {
    it('leaves the thumbnails to the sweeper when the storage fails', async () => {
      const source = await prompt();
      const ids = await stylesOf(source);
      await picture(source);
      storage.full = true;
      await thumbnails.makeForStyles(ids);
      storage.full = false;
      expect(await thumbnails.makeMissing()).toBe(1);
    });
  });

  describe(ThumbnailsSweeper.name, () => {
    const sweeper = () => new ThumbnailsSweeper(thumbnails, database.dataSource, storage, logger);
    const age = (key: string) => running.age(key, new Date(Date.now() - 2 * 3_600_000));

    it('removes old objects without a Style, including unfinished files, and nothing else', async () => {
      const source = await prompt();
      const [id] = await stylesOf(source);
      await picture(source);
      await thumbnails.makeMissing();
      const orphan = newIdentifier();
      const kept = [`thumbnails/${id}.png`, `thumbnails/${newIdentifier()}.png`, `${source}/1/0.png`];
      const strays = [`thumbnails/${orphan}.png`, `thumbnails/${id}.png.0a1b2c3d4e5f.part`, 'thumbnails/x'];
      for (const key of [kept[1], ...strays]) await storage.write(key, Buffer.from('x'));
      for (const key of [kept[0], kept[2], ...strays]) await age(key);
      expect(await sweeper().removeStrays()).toBe(strays.length);
      expect(await running.contents()).toEqual(kept.sort());
    });

    it('leaves the work to a process that is already doing it', async () => {
      const stray = `thumbnails/${newIdentifier()}.png`;
      await storage.write(stray, Buffer.from('x'));
      await age(stray);
      await database.dataSource.transaction(async (other) => {
        await other.query('SELECT pg_advisory_xact_lock($1)', [0x53545241]);
        expect(await sweeper().removeStrays()).toBe(0);
      });
      expect(await sweeper().removeStrays()).toBe(1);
    });
  });
});
