import { Collection, Style } from '@app/domain';
import type { CreateStyleDto, StyleDto } from '@app/domain/http';
import { addStored, forgetReplies, StorageQuota } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { findOwned } from '../http/find-owned';
import { insertStyles, lockOwnCollection, templatesOf } from './new-styles';
import { ImageUrls } from '../files/image-urls';
import { type List, listOf } from '../http/list';
import { StoredFiles } from '../files/stored-files';

/** The Styles of Collections. */
@Injectable()
export class StylesService {
  constructor(
    @InjectRepository(Style) private readonly styles: Repository<Style>,
    private readonly urls: ImageUrls,
    private readonly files: StoredFiles,
    private readonly quota: StorageQuota,
  ) {}

  /**
   * Adds Styles to one of the caller's Collections, all or none; they are returned in the order of the input.
   * @throws UnprocessableError `StorageFull`
   */
  async create(ownerId: string, collectionId: string, dtos: readonly CreateStyleDto[]): Promise<StyleDto[]> {
    const templates = await templatesOf(this.styles.manager, ownerId, dtos);
    const ids = await this.styles.manager.transaction(async (manager) => {
      await lockOwnCollection(manager, ownerId, collectionId, 'change');
      const made = await insertStyles(manager, { ownerId, id: collectionId }, dtos, templates, '');
      await this.quota.addRecords(manager, ownerId, made.bytes);
      return made.ids;
    });
    const rows = new Map((await this.styles.findBy({ id: In(ids) })).map((style) => [style.id, style]));
    return Promise.all(ids.flatMap((id) => rows.get(id) ?? []).map((style) => this.present(style)));
  }

  /** @throws NotFoundError for a Collection that the caller cannot read. */
  async list(ownerId: string, collectionId: string): Promise<List> {
    await findOwned(this.styles.manager, Collection, ownerId, collectionId, { orPublic: true });
    const query = this.styles
      .createQueryBuilder('style')
      .where('style.collection_id = :collectionId', { collectionId });
    return listOf(query, (rows) => Promise.all(rows.map((style) => this.present(style))));
  }

  /** @throws NotFoundError for the Collection, else for the Style. */
  async findOne(ownerId: string, collectionId: string, id: string): Promise<StyleDto> {
    const { manager } = this.styles;
    await findOwned(manager, Collection, ownerId, collectionId, { orPublic: true });
    return this.present(await findOwned(manager, Style, ownerId, id, { within: { collectionId }, orPublic: true }));
  }

  async remove(ownerId: string, collectionId: string, id: string): Promise<void> {
    await this.findOne(ownerId, collectionId, id);
    const removed = await this.styles.manager.transaction(async (manager) => {
      await lockOwnCollection(manager, ownerId, collectionId, 'change');
      const within = { collectionId };
      const style = await findOwned(manager, Style, ownerId, id, { within, lock: 'pessimistic_write' });
      await manager.delete(Style, { id, ownerId });
      await forgetReplies(manager, [id]);
      await addStored(manager, ownerId, { recordBytes: -style.recordBytes });
      return style;
    });
    await this.files.removeStyleThumbnails([removed.sourcePromptId]);
  }

  private async present({ id, name, thumbnailToken, thumbnailKey }: Style): Promise<StyleDto> {
    return {
      id,
      name,
      thumbnail: thumbnailToken && thumbnailKey && (await this.urls.of(thumbnailToken, thumbnailKey)),
    };
  }
}
