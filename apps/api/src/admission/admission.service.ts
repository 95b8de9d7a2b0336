import type { Config } from '@app/config';
import type { Metadata } from '@app/domain';
import { FieldProblems, ImageTask, InvalidError, readSandboxOrder, sandboxWaitMs } from '@app/domain';
import { Inject, Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { CONFIG } from '../config.token';
import { QueueFullError } from '../http/http-errors';
import type { StorageRow } from '../storage-use/storage-quota';
import { storageColumns, StorageQuota } from '../storage-use/storage-quota';

/** A new task as far as its key has a say in it. */
export interface NewOrder {
  metadata?: Metadata | null;
  /** Of the metadata in the body. */
  pointer: string;
}

/** What the key makes of it: no engine draws what is `sandbox`, and it is looked at after `delayMs`. */
export interface Admission {
  sandbox: boolean;
  delayMs: number;
}

/** Decides whether a caller may have more tasks, and who draws them. */
@Injectable()
export class AdmissionService {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly quota: StorageQuota,
  ) {}

  /**
   * Called in the transaction that inserts the tasks, before it does. Admissions of one key wait for one another,
   * so that the cap holds however many processes admit at once.
   * @returns one for each order.
   * @throws QueueFullError; UnprocessableError for a key whose storage is full; InvalidError for an order that a sandbox cannot follow.
   */
  async admit(manager: EntityManager, ownerId: string, orders: readonly NewOrder[]): Promise<Admission[]> {
    const [key] = await manager.query<(StorageRow & { sandbox: boolean; max_queued: number | null })[]>(
      `SELECT caller.sandbox, caller.max_queued, ${storageColumns}
       FROM api_keys caller LEFT JOIN storage_use stored ON stored.owner_id = caller.id WHERE caller.id = $1`,
      [ownerId],
    );
    this.quota.assertRoom(key);
    const { sandbox } = key;
    const cap = key.max_queued ?? this.config.maxQueuedPerKey;
    if (cap > 0) {
      await manager.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`admission ${ownerId}`]);
      const queued = await manager.countBy(ImageTask, { ownerId, status: 'queued' });
      if (queued + orders.length > cap) throw new QueueFullError(cap, queued, orders.length);
    }
    if (!sandbox) return orders.map(() => ({ sandbox, delayMs: 0 }));
    const problems = new FieldProblems();
    const read = orders.map(({ metadata, pointer }) => readSandboxOrder(metadata, pointer, problems));
    if (problems.count > 0) throw new InvalidError('ValidationFailed', problems.sentence(), problems.list());
    return read.map(({ order }) => ({ sandbox, delayMs: sandboxWaitMs(order.delayMs) }));
  }
}
