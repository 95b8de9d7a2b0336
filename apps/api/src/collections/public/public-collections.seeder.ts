import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { Collection, Style } from '@app/domain';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource, type EntityManager, In, IsNull, Not } from 'typeorm';
import { StoredFiles } from '../../files/stored-files';

/** A Style of the service's own. It has no guidance and no steps, because they depend on the model. */
interface PublicStyle {
  id: string;
  /** Token in the thumbnail's URL; unlike other thumbnails', it is no secret. */
  token: string;
  name: string;
  /** Text with `stylePlaceholder`, for any object. */
  template: string;
  negative_prompt: string | null;
  /** What the bundled model drew it from, at 512 x 512 pixels and its own settings; then it was scaled to 256 x 256. */
  thumbnail: { prompt: string; seed: number };
}

/** A Collection of the service's own, with its Styles in order. */
export interface PublicCollection {
  id: string;
  name: string;
  styles: PublicStyle[];
}

/** The public Collections of this release, oldest first. Ids never change; append new ones. */
export async function readPublicCollections(): Promise<PublicCollection[]> {
  return JSON.parse(await readFile(join(__dirname, 'collections.json'), 'utf8')) as PublicCollection[];
}

/** The PNG of a public Style. */
export function readPublicThumbnail(styleId: string): Promise<Buffer> {
  return readFile(join(__dirname, 'thumbnails', `${styleId}.png`));
}

/** Advisory lock that lets one process at a time seed: "SEED" in ASCII. */
const seedLock = 0x53454544;
const retryMs = 30_000;

/** Where the storage has the thumbnail of a public Style. */
const thumbnailKeyOf = (styleId: string): string => `thumbnails/${styleId}.png`;

/** Updates the public Collections to those of this release, at every start. Repeating it changes nothing. */
@Injectable()
export class PublicCollectionsSeeder implements OnApplicationBootstrap, OnApplicationShutdown {
  private retry?: NodeJS.Timeout;

  constructor(
    private readonly dataSource: DataSource,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly files: StoredFiles,
    private readonly logger: JsonLogger,
  ) {}

  /** Without the storage the public Collections are missing, but the service starts. */
  async onApplicationBootstrap(): Promise<void> {
    try {
      await this.seed(await readPublicCollections());
    } catch (error) {
      this.logger.warn('public Collections could not be installed yet', { reason: (error as Error).message });
      this.retry = setTimeout(() => void this.onApplicationBootstrap(), retryMs).unref();
    }
  }

  onApplicationShutdown(): void {
    clearTimeout(this.retry);
  }

  /** Installs and updates these, and removes every other public Collection. */
  async seed(collections: readonly PublicCollection[]): Promise<void> {
    for (const { id } of collections.flatMap(({ styles }) => styles)) await this.storeThumbnail(id);
    const dropped = await this.dataSource.transaction(async (manager) => {
      await manager.query('SELECT pg_advisory_xact_lock($1)', [seedLock]);
      await upsert(manager, collections);
      return removeOthers(manager, collections);
    });
    await this.files.removeAll(dropped.map(thumbnailKeyOf));
  }

  private async storeThumbnail(styleId: string): Promise<void> {
    const key = thumbnailKeyOf(styleId);
    const [shipped, stored] = await Promise.all([readPublicThumbnail(styleId), this.storage.read(key)]);
    if (!stored || !shipped.equals(await buffer(stored.stream))) await this.storage.write(key, shipped);
  }
}

/** Public rows are ordered by their place in the data; `seq` is only compared with rows of the same owner. */
async function upsert(manager: EntityManager, collections: readonly PublicCollection[]): Promise<void> {
  await manager.query(
    `INSERT INTO collections (id, seq, name, created_at)
     SELECT id, seq, name, now() FROM json_to_recordset($1) AS shipped (id text, seq int, name text)
     ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, name = excluded.name`,
    [JSON.stringify(collections.map(({ id, name }, seq) => ({ id, seq, name })))],
  );
  const styles = collections.flatMap((collection) =>
    collection.styles.map((style, seq) => ({
      ...style,
      collection_id: collection.id,
      seq,
      thumbnail_key: thumbnailKeyOf(style.id),
    })),
  );
  await manager.query(
    `INSERT INTO styles (id, collection_id, seq, name, template, negative_prompt, thumbnail_token, thumbnail_key, created_at)
     SELECT id, collection_id, seq, name, template, negative_prompt, token, thumbnail_key, now()
     FROM json_to_recordset($1) AS shipped (id text, collection_id text, seq int, name text, template text,
       negative_prompt text, token text, thumbnail_key text)
     ON CONFLICT (id) DO UPDATE SET collection_id = excluded.collection_id, seq = excluded.seq, name = excluded.name,
       template = excluded.template, negative_prompt = excluded.negative_prompt, cfg = NULL, steps = NULL,
       thumbnail_token = excluded.thumbnail_token, thumbnail_key = excluded.thumbnail_key`,
    [JSON.stringify(styles)],
  );
}

/** @returns the ids of the removed Styles. */
async function removeOthers(manager: EntityManager, collections: readonly PublicCollection[]): Promise<string[]> {
  const kept = collections.flatMap(({ styles }) => styles.map(({ id }) => id));
  // Joins the public Collections, for which there is an index.
  const others = await manager.query<{ id: string }[]>(
    `SELECT style.id FROM collections collection JOIN styles style ON style.collection_id = collection.id
     WHERE collection.owner_id IS NULL AND style.id <> ALL ($1::varchar[])`,
    [kept],
  );
  const ids = others.map(({ id }) => id);
  await manager.delete(Style, { id: In(ids) });
  await manager.delete(Collection, { ownerId: IsNull(), id: Not(In(collections.map(({ id }) => id))) });
  return ids;
}
