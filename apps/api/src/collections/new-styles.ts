import {
  type ApiKey,
  Collection,
  FieldProblems,
  FinetunePrompt,
  ForbiddenError,
  isIdentifier,
  newIdentifier,
  Style,
  toTemplate,
} from '@app/domain';
import type { CreateStyleDto } from '@app/domain/http';
import { styleRecordBytes } from '@app/tasks';
import type { EntityManager } from 'typeorm';
import { findOwned } from '../http/find-owned';
import { loopTime } from '../defence/loop-time';

/** The key that makes Styles, and is charged for them. */
type Owner = Pick<ApiKey, 'id' | 'accountId'>;

/**
 * Locks and returns one of the caller's Collections until the transaction ends: with `change` others can still add to it,
 * with `remove` they cannot.
 * @throws NotFoundError; ForbiddenError for a public one.
 */
export async function lockOwnCollection(
  manager: EntityManager,
  accountId: string,
  id: string,
  intent: 'change' | 'remove',
): Promise<{ ownerId: string }> {
  const lock = intent === 'change' ? 'for_key_share' : 'pessimistic_write';
  const collection = await findOwned(manager, Collection, accountId, id, { lock, orPublic: true });
  const { ownerId } = collection;
  if (ownerId === null)
    throw new ForbiddenError(
      'PublicCollection',
      'The Collection is public: it can be read and applied, not changed. POST /v1/prompts/collections makes one of your own.',
    );
  return { ownerId };
}

/**
 * Templates of the caller's own Prompts by id. Texts and names of a Fine-Tune never change, so this runs before the
 * transaction that makes the Styles, a few milliseconds at a time, and once per Prompt.
 */
export async function templatesOf(
  manager: EntityManager,
  { id: ownerId, accountId }: Owner,
  dtos: readonly CreateStyleDto[],
): Promise<ReadonlyMap<string, string>> {
  const ids = promptIdsOf(dtos);
  if (ids.length === 0) return new Map();
  const prompts = await manager
    .createQueryBuilder(FinetunePrompt, 'prompt')
    .innerJoinAndSelect('prompt.finetune', 'finetune')
    .where('prompt.account_id = :accountId AND prompt.id = ANY(:ids)', { accountId, ids })
    .getMany();
  const templates = new Map<string, string>();
  await loopTime.forEach(ownerId, prompts, ({ id, prompt, finetune }) =>
    templates.set(id, toTemplate(prompt, finetune)),
  );
  return templates;
}

/** The Prompts to make Styles from, without duplicates. */
export function promptIdsOf(dtos: readonly CreateStyleDto[]): string[] {
  return [...new Set(dtos.map(({ id }) => id).filter(isIdentifier))];
}

/**
 * Inserts Styles made from Prompts, which are locked until the transaction ends.
 * @param templates made by `templatesOf` before the transaction.
 * @param pointer of the array in the body.
 * @returns their ids in the order of the input, and what they take of their owner's storage.
 * @throws UnprocessableError naming each element whose `id` is not a Prompt of the caller's account.
 */
export async function insertStyles(
  manager: EntityManager,
  { id: ownerId, accountId }: Owner,
  { id: collectionId }: { id: string },
  dtos: readonly CreateStyleDto[],
  templates: ReadonlyMap<string, string>,
  pointer: string,
): Promise<{ ids: string[]; bytes: number }> {
  const prompts = await lockPrompts(manager, accountId, dtos);
  const thumbnails = await thumbnailBytesOf(manager, [...prompts.keys()]);
  const unknown = new FieldProblems();
  const createdAt = new Date();
  const rows = dtos.flatMap((dto, index) => {
    const prompt = prompts.get(dto.id);
    const template = templates.get(dto.id);
    if (!prompt || template === undefined) {
      unknown.add(`${pointer}/${index}`, 'id', `is no Prompt of yours: "${dto.id.slice(0, 40).toWellFormed()}"`);
      return [];
    }
    return {
      id: newIdentifier(),
      ownerId,
      collectionId,
      name: dto.name,
      template,
      negativePrompt: prompt.drawing.negativePrompt,
      cfg: dto.cfg ?? prompt.drawing.cfg,
      steps: dto.steps ?? prompt.drawing.steps,
      sourcePromptId: prompt.id,
      thumbnailToken: newIdentifier(),
      thumbnailKey: prompt.thumbnailKey,
      recordBytes:
        styleRecordBytes(dto.name, template, prompt.drawing.negativePrompt) + (thumbnails.get(prompt.id) ?? 0),
      createdAt,
    };
  });
  unknown.refuseIfAny('PromptNotFound');
  if (rows.length > 0) await manager.insert(Style, rows);
  return { ids: rows.map(({ id }) => id), bytes: rows.reduce((sum, { recordBytes }) => sum + recordBytes, 0) };
}

/** Bytes by the Prompts' ids: all that a Prompt's task has stored beside its pictures. */
async function thumbnailBytesOf(manager: EntityManager, promptIds: readonly string[]): Promise<Map<string, number>> {
  const found = await manager.query<{ id: string; bytes: string }[]>(
    `SELECT task.id, task.picture_bytes - coalesce(sum(image.bytes + coalesce(image.thumbnail_bytes, 0)), 0) AS bytes
     FROM tasks task LEFT JOIN images image ON image.task_id = task.id WHERE task.id = ANY($1) GROUP BY task.id`,
    [promptIds],
  );
  return new Map(found.map(({ id, bytes }) => [id, Number(bytes)]));
}

async function lockPrompts(
  manager: EntityManager,
  accountId: string,
  dtos: readonly CreateStyleDto[],
): Promise<Map<string, FinetunePrompt>> {
  const ids = promptIdsOf(dtos);
  if (ids.length === 0) return new Map();
  const prompts = await manager
    .createQueryBuilder(FinetunePrompt, 'prompt')
    .innerJoinAndSelect('prompt.drawing', 'drawing')
    .where('prompt.account_id = :accountId AND prompt.id = ANY(:ids)', { accountId, ids })
    // Transactions that lock several rows do it in the same order, so that none deadlock.
    .orderBy('prompt.id')
    // A settlement that gives a Prompt a thumbnail is waited for; a later one finds these Styles.
    .setLock('pessimistic_read', undefined, ['prompt'])
    .getMany();
  return new Map(prompts.map((prompt) => [prompt.id, prompt]));
}
