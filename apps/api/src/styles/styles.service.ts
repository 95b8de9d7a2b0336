import { Collection, FieldProblems, FinetunePrompt, newIdentifier, Style, UnprocessableError } from '@app/domain';
import type { CreateStyleDto, StyleDto } from '@app/domain/http';
import { forgetReplies } from '@app/image-tasks';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { In, Repository } from 'typeorm';
import { findOwned, findReadable } from '../auth/find-owned';
import { lockOwnCollection } from '../collections/lock-own-collection';
import { ImageUrls } from '../images/image-urls';
import type { List } from '../infrastructure/list';
import { listOf } from '../infrastructure/list';
import { StoredFiles } from '../storage-use/stored-files';
import { promptIdsOf, templatesOf } from './style-templates';
import { ThumbnailsService } from './thumbnails.service';

/** Thumbnails whose files a request removes: a Collection may have any number of them. */
const thumbnailsAtOnce = 1000;

/** The Styles of Collections. */
@Injectable()
export class StylesService {
  constructor(
    @InjectRepository(Style) private readonly styles: Repository<Style>,
    private readonly thumbnails: ThumbnailsService,
    private readonly urls: ImageUrls,
    private readonly files: StoredFiles,
  ) {}

  /** Adds Styles to one of the caller's Collections, all or none, and answers in the order of the input. */
  async create(ownerId: string, collectionId: string, dtos: readonly CreateStyleDto[]): Promise<StyleDto[]> {
    const templates = await templatesOf(this.styles.manager, ownerId, dtos);
    const ids = await this.styles.manager.transaction(async (manager) => {
      await lockOwnCollection(manager, ownerId, collectionId, 'change');
      return this.insertAll(manager, { ownerId, id: collectionId }, dtos, templates, '');
    });
    await this.thumbnails.makeNew(ids);
    const rows = new Map((await this.styles.findBy({ id: In(ids) })).map((style) => [style.id, style]));
    return ids.flatMap((id) => rows.get(id) ?? []).map((style) => this.present(style));
  }

  /**
   * Inserts Styles made from Prompts, which stay in place until the transaction ends.
   * @param templates as `templatesOf` made them before the transaction.
   * @param pointer of the array in the body.
   * @returns their ids in the order of the input.
   * @throws UnprocessableError naming each element whose `id` is no Prompt of the Collection's owner.
   */
  async insertAll(
    manager: EntityManager,
    collection: { id: string; ownerId: string },
    dtos: readonly CreateStyleDto[],
    templates: ReadonlyMap<string, string>,
    pointer: string,
  ): Promise<string[]> {
    const { ownerId, id: collectionId } = collection;
    const prompts = await this.lockPrompts(manager, ownerId, dtos);
    const unknown = new FieldProblems();
    const createdAt = new Date();
    const rows = dtos.flatMap((dto, index) => {
      const prompt = prompts.get(dto.id);
      const template = templates.get(dto.id);
      if (!prompt || template === undefined) unknown.add(`${pointer}/${index}`, 'id', 'is no Prompt of yours');
      return prompt && template !== undefined
        ? [
            {
              id: newIdentifier(),
              ownerId,
              collectionId,
              name: dto.name,
              template,
              negativePrompt: prompt.task.negativePrompt,
              cfg: dto.cfg ?? prompt.task.cfg,
              steps: dto.steps ?? prompt.task.steps,
              sourcePromptId: prompt.id,
              createdAt,
            },
          ]
        : [];
    });
    if (unknown.count > 0) throw new UnprocessableError('PromptNotFound', unknown.sentence(), unknown.list());
    if (rows.length > 0) await manager.insert(Style, rows);
    return rows.map(({ id }) => id);
  }

  /** @throws NotFoundError for a Collection that the caller cannot read. */
  async list(ownerId: string, collectionId: string): Promise<List> {
    await findReadable(this.styles.manager, Collection, ownerId, collectionId);
    const query = this.styles
      .createQueryBuilder('style')
      .where('style.collection_id = :collectionId', { collectionId });
    return listOf(query, (rows) => rows.map((style) => this.present(style)));
  }

  /** @throws NotFoundError for the Collection, else for the Style. */
  async findOne(ownerId: string, collectionId: string, id: string): Promise<StyleDto> {
    const { manager } = this.styles;
    await findReadable(manager, Collection, ownerId, collectionId);
    return this.present(await findReadable(manager, Style, ownerId, id, { within: { collectionId } }));
  }

  /** Removes the row, and after it the thumbnail. */
  async remove(ownerId: string, collectionId: string, id: string): Promise<void> {
    await this.findOne(ownerId, collectionId, id);
    const removed = await this.styles.manager.transaction(async (manager) => {
      await lockOwnCollection(manager, ownerId, collectionId, 'change');
      const within = { collectionId };
      const style = await findOwned(manager, Style, ownerId, id, { within, lock: 'pessimistic_write' });
      await manager.delete(Style, { id, ownerId });
      await forgetReplies(manager, [id]);
      return style;
    });
    if (removed.thumbnailKey) await this.files.removeAll([removed.thumbnailKey]);
  }

  private async lockPrompts(
    manager: EntityManager,
    ownerId: string,
    dtos: readonly CreateStyleDto[],
  ): Promise<Map<string, FinetunePrompt>> {
    const ids = promptIdsOf(dtos);
    if (ids.length === 0) return new Map();
    const prompts = await manager
      .createQueryBuilder(FinetunePrompt, 'prompt')
      .innerJoinAndSelect('prompt.task', 'task')
      .where('prompt.owner_id = :ownerId AND prompt.id = ANY(:ids)', { ownerId, ids })
      // One order for all who lock several, so that no two wait for each other.
      .orderBy('prompt.id')
      .setLock('for_key_share', undefined, ['prompt'])
      .getMany();
    return new Map(prompts.map((prompt) => [prompt.id, prompt]));
  }

  private present({ id, name, thumbnailToken, thumbnailKey }: Style): StyleDto {
    return { id, name, thumbnail: thumbnailToken && thumbnailKey && this.urls.of(thumbnailToken, thumbnailKey) };
  }
}

/**
 * Deletes the Styles of a Collection.
 * @returns which thumbnails hung on the first of them, for removal after the commit; the sweeper removes the others.
 */
export async function removeStylesOf(manager: EntityManager, collectionId: string): Promise<string[]> {
  const first = await manager.query<{ key: string | null }[]>(
    `SELECT thumbnail_key AS key FROM styles WHERE collection_id = $1 ORDER BY seq LIMIT (SELECT $2::integer) FOR UPDATE`,
    [collectionId, thumbnailsAtOnce],
  );
  await manager.delete(Style, { collectionId });
  return first.flatMap(({ key }) => key ?? []);
}
