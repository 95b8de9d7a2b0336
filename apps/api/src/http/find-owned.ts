import {
  Collection,
  Finetune,
  FinetunePrompt,
  isIdentifier,
  NotFoundError,
  type ResourceName,
  Style,
  UploadedPicture,
} from '@app/domain';
import { type EntityManager, IsNull, type ObjectLiteral } from 'typeorm';

type Owned = Collection | Finetune | FinetunePrompt | Style | UploadedPicture;
type EntityClass<T> = new () => T;

const names = new Map<EntityClass<Owned>, ResourceName>([
  [Collection, 'Collection'],
  [Finetune, 'FineTune'],
  [FinetunePrompt, 'Prompt'],
  [Style, 'Style'],
  [UploadedPicture, 'Upload'],
]);

export interface FindOptions {
  within?: { finetuneId: string } | { collectionId: string };
  relations?: { drawing: { task: true } };
  /** Until the transaction ends: `for_key_share` prevents deletion, `pessimistic_write` every change. */
  lock?: 'for_key_share' | 'pessimistic_write';
  /** A public record has no owner. */
  orPublic?: boolean;
}

/**
 * A record of the caller's account, or one that everybody may read.
 * @throws NotFoundError also for another account's, and for a text that cannot be an id, which is not looked up:
 * PostgreSQL rejects some, such as one with a zero byte.
 */
export async function findOwned<T extends Owned>(
  manager: EntityManager,
  entity: EntityClass<T>,
  accountId: string,
  id: string,
  { within, relations, lock, orPublic = false }: FindOptions = {},
): Promise<T> {
  const owners = orPublic ? [{ accountId }, { ownerId: IsNull() }] : [{ accountId }];
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
