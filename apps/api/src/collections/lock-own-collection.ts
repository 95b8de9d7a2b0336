import { Collection, ForbiddenError } from '@app/domain';
import type { EntityManager } from 'typeorm';
import { findReadable } from '../http/find-owned';

/**
 * Locks one of the caller's Collections until the transaction ends: with `change` others can still add to it,
 * with `remove` they cannot.
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
    throw new ForbiddenError(
      'PublicCollection',
      'The Collection is public: it can be read and applied, not changed. POST /v1/prompts/collections makes one of your own.',
    );
}
