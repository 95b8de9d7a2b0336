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
import { type EntityManager, IsNull, type ObjectLiteral } from 'typeorm';

type Owned = Collection | Finetune | FinetunePrompt | Style | UploadedPicture | WebhookDelivery;
type EntityClass<T> = new () => T;

const names = new Map<EntityClass<Owned>, ResourceName>([
  [Collection, 'Collection'],
  [Finetune, 'FineTune'],
  [FinetunePrompt, 'Prompt'],
  [Style, 'Style'],
  [UploadedPicture, 'Upload'],
  [WebhookDelivery, 'Delivery'],
]);

export interface FindOptions {
  within?: { finetuneId: string } | { collectionId: string } | { taskId: string };
  relations?: { drawing: { task: true } };
  /** Until the transaction ends: `for_key_share` prevents deletion, `pessimistic_write` every change. */
  lock?: 'for_key_share' | 'pessimistic_write';
  /** A public record has no owner. */
  orPublic?: boolean;
}

/**
 * A record of the caller's, or one that everybody may read.
 * @throws NotFoundError also for another caller's, and for a text that cannot be an id, which is not looked up:
 * PostgreSQL rejects some, such as one with a zero byte.
 */
export async function findOwned<T extends Owned>(
  manager: EntityManager,
  entity: EntityClass<T>,
  ownerId: string,
  id: string,
  { within, relations, lock, orPublic = false }: FindOptions = {},
): Promise<T> {
  const owners = orPublic ? [ownerId, IsNull()] : [ownerId];
  const found = isIdentifier(id)
    ? await manager.findOne<ObjectLiteral>(entity, {
        where: owners.map((owner) => ({ ...within, id, ownerId: owner })),
        ...(relations && { relations }),
        ...(lock && { lock: { mode: lock } }),
      })
    : null;
  if (!found) throw new NotFoundError(names.get(entity)!);
  return found as T;
}
