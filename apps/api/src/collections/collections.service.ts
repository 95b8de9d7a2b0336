import { Collection, newIdentifier } from '@app/domain';
import type { CollectionDto, CreateCollectionDto } from '@app/domain/http';
import { addStoredOf, collectionRecordBytes, forgetReplies, StorageQuota } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Repository } from 'typeorm';
import type { CallerKey } from '../http/caller.decorator';
import { findOwned } from '../http/find-owned';
import { ImageUrls } from '../files/image-urls';
import { type List, listOf } from '../http/list';
import { StoredFiles } from '../files/stored-files';
import { insertStyles, lockOwnCollection, templatesOf } from './new-styles';

/** Thumbnail files that one request removes: a Collection may have any number of them. */
const thumbnailsAtOnce = 1000;

/** A caller's Collections, and the public ones. */
@Injectable()
export class CollectionsService {
  constructor(
    @InjectRepository(Collection) private readonly collections: Repository<Collection>,
    private readonly urls: ImageUrls,
    private readonly files: StoredFiles,
    private readonly quota: StorageQuota,
  ) {}

  /** Creates the Collection with its Styles, or nothing. @throws UnprocessableError `StorageFull` */
  async create(caller: CallerKey, dto: CreateCollectionDto): Promise<CollectionDto> {
    const id = newIdentifier();
    const { id: ownerId, accountId } = caller;
    const templates = await templatesOf(this.collections.manager, caller, dto.styles);
    await this.collections.manager.transaction(async (manager) => {
      await manager.insert(Collection, { id, ownerId, name: dto.name, createdAt: new Date() });
      const { bytes } = await insertStyles(manager, caller, { id }, dto.styles, templates, '/styles');
      await this.quota.addRecords(manager, ownerId, collectionRecordBytes + bytes);
    });
    return this.findOne(accountId, id);
  }

  list(accountId: string, scope?: 'public'): List {
    const query = this.collections.createQueryBuilder('collection');
    if (scope === 'public') query.where('collection.owner_id IS NULL');
    else query.where('collection.account_id = :accountId', { accountId });
    return listOf(query, (rows) => this.present(rows));
  }

  /** @throws NotFoundError, also for another caller's. */
  async findOne(accountId: string, id: string): Promise<CollectionDto> {
    const found = await findOwned(this.collections.manager, Collection, accountId, id, { orPublic: true });
    const [dto] = await this.present([found]);
    return dto;
  }

  /**
   * Deletes the rows of the Collection and its Styles together, then the thumbnails; the sweeper removes those beyond
   * `thumbnailsAtOnce`.
   */
  async remove(accountId: string, id: string): Promise<void> {
    const sources = await this.collections.manager.transaction(async (manager) => {
      const { ownerId } = await lockOwnCollection(manager, accountId, id, 'remove');
      const { sources: removed, freed } = await removeStylesOf(manager, id);
      await manager.delete(Collection, { id });
      await forgetReplies(manager, [id]);
      await addStoredOf(manager, [...freed, { ownerId, recordBytes: -collectionRecordBytes }]);
      return removed;
    });
    await this.files.removeStyleThumbnails(sources);
  }

  private async present(collections: readonly Collection[]): Promise<CollectionDto[]> {
    const firstStyles = await this.collections.query<{ id: string; token: string | null; key: string | null }[]>(
      `SELECT collection.id, style.thumbnail_token AS token, style.thumbnail_key AS key
       FROM unnest($1::varchar[]) AS collection (id)
       CROSS JOIN LATERAL (SELECT * FROM styles WHERE collection_id = collection.id ORDER BY seq LIMIT 1) style`,
      [collections.map(({ id }) => id)],
    );
    const thumbnails = new Map(
      await Promise.all(
        firstStyles.map(async ({ id, token, key }) => [id, token && key && (await this.urls.of(token, key))] as const),
      ),
    );
    return collections.map(({ id, name }) => ({ id, name, thumbnail: thumbnails.get(id) || null }));
  }
}

/**
 * @returns what their keys get back of their storage, and the Prompts of the first of them, whose thumbnails may go after the
 * commit; the sweeper removes the others.
 */
async function removeStylesOf(manager: EntityManager, collectionId: string) {
  const first = await manager.query<{ source: string | null }[]>(
    `SELECT source_prompt_id AS source FROM styles WHERE collection_id = $1 ORDER BY seq LIMIT (SELECT $2::integer) FOR UPDATE`,
    [collectionId, thumbnailsAtOnce],
  );
  const removed = await manager.query<{ ownerId: string; bytes: string }[]>(
    `WITH removed AS (DELETE FROM styles WHERE collection_id = $1 RETURNING owner_id, record_bytes)
     SELECT owner_id AS "ownerId", sum(record_bytes) AS bytes FROM removed GROUP BY owner_id`,
    [collectionId],
  );
  const freed = removed.map(({ ownerId, bytes }) => ({ ownerId, recordBytes: -Number(bytes) }));
  return { freed, sources: first.map(({ source }) => source) };
}
