import { Collection, Style } from '@app/domain';
import type { CreateStyleDto, StyleDto } from '@app/domain/http';
import { addStored, forgetReplies, StorageQuota } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import type { CallerKey } from '../http/caller.decorator';
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
  async create(caller: CallerKey, collectionId: string, dtos: readonly CreateStyleDto[]): Promise<StyleDto[]> {
    const templates = await templatesOf(this.styles.manager, caller, dtos);
    const ids = await this.styles.manager.transaction(async (manager) => {
      await lockOwnCollection(manager, caller.accountId, collectionId, 'change');
      const made = await insertStyles(manager, caller, { id: collectionId }, dtos, templates, '');
      await this.quota.addRecords(manager, caller.id, made.bytes);
      return made.ids;
    });
    const rows = new Map((await this.styles.findBy({ id: In(ids) })).map((style) => [style.id, style]));
    return Promise.all(ids.flatMap((id) => rows.get(id) ?? []).map((style) => this.present(style)));
  }

  /** @throws NotFoundError for a Collection that the caller cannot read. */
  async list(accountId: string, collectionId: string): Promise<List> {
    await findOwned(this.styles.manager, Collection, accountId, collectionId, { orPublic: true });
    const query = this.styles
      .createQueryBuilder('style')
      .where('style.collection_id = :collectionId', { collectionId });
    return listOf(query, (rows) => Promise.all(rows.map((style) => this.present(style))));
  }

  /** @throws NotFoundError for the Collection, else for the Style. */
  async findOne(accountId: string, collectionId: string, id: string): Promise<StyleDto> {
    const { manager } = this.styles;
    await findOwned(manager, Collection, accountId, collectionId, { orPublic: true });
    return this.present(await findOwned(manager, Style, accountId, id, { within: { collectionId }, orPublic: true }));
  }

  async remove(accountId: string, collectionId: string, id: string): Promise<void> {
    await this.findOne(accountId, collectionId, id);
    const removed = await this.styles.manager.transaction(async (manager) => {
      await lockOwnCollection(manager, accountId, collectionId, 'change');
      const within = { collectionId };
      const style = await findOwned(manager, Style, accountId, id, { within, lock: 'pessimistic_write' });
      await manager.delete(Style, { id });
      await forgetReplies(manager, [id]);
      await addStored(manager, style.ownerId!, { recordBytes: -style.recordBytes });
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
