import { Collection, ForbiddenError } from '@app/domain';
import type { EntityManager } from 'typeorm';
import { findReadable } from '../auth/find-owned';

/**
 * Keeps one of the caller's Collections in place until the transaction ends: `change` lets others add to it too, `remove` nobody.
 * @throws NotFoundError; ForbiddenError for a public one.
 */
export async function lockOwnCollection(
  manager: EntityManager,
  ownerId: string,
  id: string,
  intent: 'change' | 'remove',
): Promise<void> {
  const lock = intent === 'change' ? 'for_key_share' : 'pessimistic_write';
  const collection = await findReadable(manager, Collection, ownerId, id, { lock });
  if (collection.ownerId === null)
    throw new ForbiddenError('PublicCollection', 'The Collection is public: it can be read and applied, not changed.');
}
