import { Drawing, Finetune, FinetunePrompt, Generation, picturesIn, Task } from '@app/domain';
import { afterCommit, type Transactions, type WakeUps } from '@app/queue';
import type { EntityManager } from 'typeorm';
import { costOf } from './drawings';
import { levelNewcomerStatement } from './fair-queue';
import { useUploads } from './uploads';

/** Values that the intake and its worker add to a drawing. */
type NotYet = 'id' | 'task' | 'weightsHash' | 'weightsScale' | 'servedBy' | 'upscaler';

/** A new task, what it draws, and the record that owns it; only tests omit the record. */
export interface NewTask
  extends Pick<Task, 'id' | 'kind' | 'ownerId' | 'model' | 'sandbox' | 'createdAt'>, Omit<Drawing, NotYet> {
  generation?: Pick<Generation, 'webhook' | 'metadata'>;
  finetunePrompt?: Pick<FinetunePrompt, 'prompt' | 'webhook' | 'metadata'>;
}

/** Everything one request inserts: all of it or nothing. */
export interface NewTasks {
  ownerId: string;
  /** How many tasks of this owner may wait; 0: no limit. */
  maxQueued: number;
  tasks: readonly NewTask[];
  /** Base of the URLs of pictures here: what a task is drawn from is kept as long as the task is. */
  publicUrl?: string;
}

/**
 * Whether a request was inserted. If not, its owner's key is revoked, or its limit has no room beside the
 * `queued` tasks that wait.
 */
export type InsertOutcome = { accepted: true } | { accepted: false; revoked: boolean; queued: number };

/**
 * With fewer places left than this in a key's limit of waiting tasks, its requests are counted one after the other.
 * Otherwise they need not be: a key has fewer requests open at once, of one task each.
 */
const fewPlaces = 200;

/** In SQL: the waiting tasks of the owner $1, counted up to $2. */
export const countQueued = `(SELECT count(*)::integer FROM (
    SELECT FROM tasks WHERE owner_id = $1 AND status = 'queued' LIMIT $2
  ) AS counted)`;

/** Parameters: those of `countQueued`. */
const lookStatement = `
SELECT (SELECT revoked_at FROM api_keys WHERE id = $1) IS NOT NULL AS revoked,
  ${countQueued} AS queued,
  EXISTS (SELECT FROM tasks WHERE owner_id = $1 AND status IN ('queued', 'processing') AND NOT sandbox) AS present`;

/** Writes what a request makes: its tasks, the records that own them, and its owner's place in the fair queue. */
export class TaskIntake {
  constructor(
    private readonly transactions: Transactions,
    private readonly wakeUps: WakeUps,
  ) {}

  /**
   * Resolves when everything is committed and a worker is about to be woken, or when there is no room for it.
   * @throws UnprocessableError `PictureNotFound` for an upload that was deleted meanwhile
   */
  async insert({ ownerId, maxQueued, tasks, publicUrl = '' }: NewTasks): Promise<InsertOutcome> {
    const outcome = await this.transactions.run(async (manager): Promise<InsertOutcome> => {
      let { revoked, queued, present } = await look(manager, ownerId, maxQueued);
      const room = (): number => maxQueued - queued - tasks.length;
      if (maxQueued > 0 && (tasks.length > 1 || room() < fewPlaces)) {
        await manager.query(`SELECT pg_advisory_xact_lock(hashtextextended('queue of ' || $1, 0))`, [ownerId]);
        // Whatever others have committed before the lock was had is seen by a statement that follows it.
        ({ revoked, queued, present } = await look(manager, ownerId, maxQueued));
      }
      if (revoked || (maxQueued > 0 && room() < 0)) return { accepted: false, revoked, queued };
      if (!present && tasks.some(({ sandbox }) => !sandbox)) await manager.query(levelNewcomerStatement, [ownerId]);
      await insertRows(manager, tasks);
      for (const { id: taskId, inputs } of tasks)
        await useUploads(manager, { publicUrl, ownerId, taskId, pictures: picturesIn(inputs) });
      return { accepted: true };
    });
    if (outcome.accepted) await afterCommit(async () => this.wakeUps.ask());
    return outcome;
  }
}

async function look(manager: EntityManager, ownerId: string, maxQueued: number) {
  const [found] = await manager.query<[{ revoked: boolean; queued: number; present: boolean }]>(lookStatement, [
    ownerId,
    maxQueued,
  ]);
  return found;
}

async function insertRows(manager: EntityManager, tasks: readonly NewTask[]): Promise<void> {
  const finetunes = new Map<string, Finetune | null>();
  for (const { finetuneId: id } of tasks)
    if (id !== null && !finetunes.has(id)) finetunes.set(id, await manager.findOneBy(Finetune, { id }));
  const rows = tasks.map((task) => {
    const { weightsHash = null, weightsScale = null } = finetunes.get(task.finetuneId ?? '') ?? {};
    return { ...task, weightsHash, weightsScale, status: 'queued' as const, cost: costOf(task) };
  });
  await manager.insert(Task, rows);
  await manager.insert(Drawing, rows);
  const generations = tasks.flatMap(({ id, ownerId, generation }) =>
    generation ? [{ id, ownerId, ...generation }] : [],
  );
  if (generations.length > 0) await manager.insert(Generation, generations as object[]);
  const prompts = tasks.flatMap(({ id, ownerId, finetuneId, finetunePrompt }) =>
    finetunePrompt ? [{ id, ownerId, finetuneId: finetuneId ?? '', ...finetunePrompt }] : [],
  );
  if (prompts.length > 0) await manager.insert(FinetunePrompt, prompts as object[]);
}
