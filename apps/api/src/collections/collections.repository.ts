import { Collection, ForbiddenError, isIdentifier, NotFoundError } from '@app/domain';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { IsNull, Repository } from 'typeorm';

/** Finds Collections that a caller may read, and locks those that it may change. */
@Injectable()
export class CollectionsRepository {
  constructor(@InjectRepository(Collection) private readonly collections: Repository<Collection>) {}

  /**
   * One of the caller's, or a public one.
   * @throws NotFoundError also for another caller's.
   */
  async findReadable(ownerId: string, id: string): Promise<Collection> {
    return found(isIdentifier(id) && (await this.collections.findOneBy(readableBy(ownerId, id))));
  }

  /**
   * Keeps one of the caller's in place until the transaction ends: `change` lets others add to it too, `remove` nobody.
   * @throws NotFoundError; ForbiddenError for a public one.
   */
  async lockOwn(manager: EntityManager, ownerId: string, id: string, intent: 'change' | 'remove'): Promise<void> {
    const mode = intent === 'change' ? 'for_key_share' : 'pessimistic_write';
    const collection = found(
      isIdentifier(id) && (await manager.findOne(Collection, { where: readableBy(ownerId, id), lock: { mode } })),
    );
    if (collection.ownerId === null)
      throw new ForbiddenError(
        'PublicCollection',
        'The Collection is public: it can be read and applied, not changed.',
      );
  }
}

const readableBy = (ownerId: string, id: string) => [
  { id, ownerId },
  { id, ownerId: IsNull() },
];

function found(collection: Collection | null | false): Collection {
  if (!collection) throw new NotFoundError('Collection');
  return collection;
}
