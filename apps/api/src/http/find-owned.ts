import {
  Collection,
  Finetune,
  FinetunePrompt,
  isIdentifier,
  NotFoundError,
  type ResourceName,
  Style,
  UploadedPicture,
  WebhookDelivery,
} from '@app/domain';
import { type EntityManager, type FindOptionsWhere, IsNull, type ObjectLiteral } from 'typeorm';

type Owned = Collection | Finetune | FinetunePrompt | Style | UploadedPicture | WebhookDelivery;
type EntityClass<T> = new () => T;

/** The name of a record in errors. */
const names = new Map<EntityClass<Owned>, ResourceName>([
  [Collection, 'Collection'],
  [Finetune, 'FineTune'],
  [FinetunePrompt, 'Prompt'],
  [Style, 'Style'],
  [UploadedPicture, 'Upload'],
  [WebhookDelivery, 'Delivery'],
]);

export interface FindOptions {
  /** The record that it must belong to. */
  within?: { finetuneId: string } | { collectionId: string } | { taskId: string };
  /** Also reads what draws it. */
  relations?: { drawing: { task: true } };
  /** Locks it until the transaction ends: `for_key_share` prevents its deletion, `pessimistic_write` every change. */
  lock?: 'for_key_share' | 'pessimistic_write';
}

/**
 * A record of the caller's.
 * @throws NotFoundError also for another caller's, and for a public one.
 */
export function findOwned<T extends Owned>(
  manager: EntityManager,
  entity: EntityClass<T>,
  ownerId: string,
  id: string,
  options?: FindOptions,
): Promise<T> {
  return find(manager, entity, id, [{ ownerId }], options);
}

/**
 * A record of the caller's, or a public one, which has no owner.
 * @throws NotFoundError also for another caller's.
 */
export function findReadable<T extends Collection | Style>(
  manager: EntityManager,
  entity: EntityClass<T>,
  ownerId: string,
  id: string,
  options?: FindOptions,
): Promise<T> {
  return find(manager, entity, id, [{ ownerId }, { ownerId: IsNull() }], options);
}

/** A text that cannot be an id is not looked up: PostgreSQL rejects some, such as one with a zero byte. */
async function find<T extends Owned>(
  manager: EntityManager,
  entity: EntityClass<T>,
  id: string,
  owners: readonly FindOptionsWhere<ObjectLiteral>[],
  { within, relations, lock }: FindOptions = {},
): Promise<T> {
  const found = isIdentifier(id)
    ? await manager.findOne<ObjectLiteral>(entity, {
        where: owners.map((owner) => ({ ...within, id, ...owner })),
        ...(relations && { relations }),
        ...(lock && { lock: { mode: lock } }),
      })
    : null;
  if (!found) throw new NotFoundError(names.get(entity)!);
  return found as T;
}
