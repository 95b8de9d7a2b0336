import { Collection, newIdentifier } from '@app/domain';
import type { CollectionDto, CreateCollectionDto } from '@app/domain/http';
import { forgetReplies } from '@app/image-tasks';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { findReadable } from '../auth/find-owned';
import { ImageUrls } from '../images/image-urls';
import type { List } from '../infrastructure/list';
import { listOf } from '../infrastructure/list';
import { StoredFiles } from '../storage-use/stored-files';
import { templatesOf } from '../styles/style-templates';
import { removeStylesOf, StylesService } from '../styles/styles.service';
import { ThumbnailsService } from '../styles/thumbnails.service';
import { lockOwnCollection } from './lock-own-collection';

/** A caller's Collections, and the public ones. */
@Injectable()
export class CollectionsService {
  constructor(
    @InjectRepository(Collection) private readonly collections: Repository<Collection>,
    private readonly styles: StylesService,
    private readonly thumbnails: ThumbnailsService,
    private readonly urls: ImageUrls,
    private readonly files: StoredFiles,
  ) {}

  /** The Collection and its Styles, or nothing. */
  async create(ownerId: string, dto: CreateCollectionDto): Promise<CollectionDto> {
    const id = newIdentifier();
    const templates = await templatesOf(this.collections.manager, ownerId, dto.styles);
    const styleIds = await this.collections.manager.transaction(async (manager) => {
      await manager.insert(Collection, { id, ownerId, name: dto.name, createdAt: new Date() });
      return this.styles.insertAll(manager, { id, ownerId }, dto.styles, templates, '/styles');
    });
    await this.thumbnails.makeNew(styleIds);
    return this.findOne(ownerId, id);
  }

  /** @param isPublic the public ones instead of the caller's. */
  list(ownerId: string, isPublic: boolean): List {
    const query = this.collections.createQueryBuilder('collection');
    if (isPublic) query.where('collection.owner_id IS NULL');
    else query.where('collection.owner_id = :ownerId', { ownerId });
    return listOf(query, (rows) => this.present(rows));
  }

  /** @throws NotFoundError also for another caller's. */
  async findOne(ownerId: string, id: string): Promise<CollectionDto> {
    const [dto] = await this.present([await findReadable(this.collections.manager, Collection, ownerId, id)]);
    return dto;
  }

  /** Removes the rows of the Collection and its Styles together, and after them the thumbnails; of very many the sweeper removes the last. */
  async remove(ownerId: string, id: string): Promise<void> {
    const thumbnailKeys = await this.collections.manager.transaction(async (manager) => {
      await lockOwnCollection(manager, ownerId, id, 'remove');
      const removed = await removeStylesOf(manager, id);
      await manager.delete(Collection, { id });
      await forgetReplies(manager, [id]);
      return removed;
    });
    await this.files.removeAll(thumbnailKeys);
  }

  private async present(collections: readonly Collection[]): Promise<CollectionDto[]> {
    const firstStyles = await this.collections.query<{ id: string; token: string | null; key: string | null }[]>(
      `SELECT collection.id, style.thumbnail_token AS token, style.thumbnail_key AS key
       FROM unnest($1::varchar[]) AS collection (id)
       CROSS JOIN LATERAL (SELECT * FROM styles WHERE collection_id = collection.id ORDER BY seq LIMIT 1) style`,
      [collections.map(({ id }) => id)],
    );
    const thumbnails = new Map(firstStyles.map(({ id, token, key }) => [id, token && key && this.urls.of(token, key)]));
    return collections.map(({ id, name }) => ({ id, name, thumbnail: thumbnails.get(id) || null }));
  }
}
