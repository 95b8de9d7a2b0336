import type { Config } from '@app/config';
import type { ApiKey, Metadata } from '@app/domain';
import { FieldProblems, readSandboxOrder, TooManyError, UnauthorizedError, UnprocessableError } from '@app/domain';
import { CONFIG } from '@app/config';
import type { NewTask } from '@app/tasks';
import { TaskIntake } from '@app/tasks';
import { Transactions } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import type { CallerKey } from '../http/caller.decorator';
import { StorageQuota } from '../http/storage-quota';

/** The parts of a new task that concern its key. */
export interface NewOrder {
  metadata?: Metadata | null;
  /** JSON pointer to the metadata in the body. */
  pointer: string;
}

/** What the key decides about a task: no engine draws a `sandbox` task. */
export type TaskTerms = Pick<NewTask, 'sandbox'>;

/** The key has reached its limit of waiting tasks. */
class QueueFullError extends TooManyError {
  constructor(max: number, queued: number, added: number, retryAfterSeconds = 10) {
    super(
      'QueueFull',
      `This API key may have ${max} Generations and Prompts waiting; ${queued} are, and this would add ${added}.`,
      retryAfterSeconds,
    );
  }
}

/** Decides whether a caller may have more tasks, and who draws them. */
@Injectable()
export class AcceptanceService {
  constructor(
    private readonly intake: TaskIntake,
    private readonly transactions: Transactions,
    private readonly quota: StorageQuota,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /**
   * Checks everything that can be checked before anything is written.
   * @returns one for each order.
   * @throws UnprocessableError for a key whose storage is full; InvalidError for an order that a sandbox cannot follow.
   */
  accept({ storage, sandbox }: CallerKey, orders: readonly NewOrder[]): TaskTerms[] {
    this.quota.assertRoom(storage);
    const problems = new FieldProblems();
    if (sandbox) for (const { metadata, pointer } of orders) readSandboxOrder(metadata, pointer, problems);
    problems.throwIfAny();
    return orders.map(() => ({ sandbox }));
  }

  /**
   * Refuses many tasks before work is done for them; `insert` decides.
   * @throws UnprocessableError for more than may ever wait; QueueFullError for more than may wait now.
   */
  async assertQueueRoom({ id, maxQueued }: ApiKey, count: number): Promise<void> {
    const cap = maxQueued ?? this.config.maxQueuedPerKey;
    if (cap === 0 || count <= 1) return;
    if (count > cap)
      throw new UnprocessableError(
        'TooManyPrompts',
        `This API key may have ${cap} Generations and Prompts waiting, so a request for ${count} can never succeed.`,
      );
    const [{ queued }] = await this.transactions.query<{ queued: number }>({
      name: 'count-queued',
      text: `SELECT count(*)::integer AS queued FROM (
        SELECT FROM tasks WHERE owner_id = $1 AND status = 'queued' LIMIT $2
      ) AS counted`,
      values: [id, cap],
    });
    if (queued + count > cap) throw new QueueFullError(cap, queued, count);
  }

  /**
   * Writes all tasks of a request, their records and their jobs, or none.
   * @throws UnauthorizedError for a key that was revoked meanwhile; QueueFullError if the key would exceed its limit of
   * waiting tasks, whatever else is being written.
   */
  async insert({ id: ownerId, maxQueued }: ApiKey, tasks: readonly NewTask[]): Promise<void> {
    const cap = maxQueued ?? this.config.maxQueuedPerKey;
    const outcome = await this.intake.insert({ ownerId, maxQueued: cap, tasks });
    if (outcome.admitted) return;
    if (outcome.revoked) throw new UnauthorizedError();
    throw new QueueFullError(cap, outcome.queued, tasks.length);
  }
}
