import { Finetune, FinetunePrompt, Generation, ImageTask } from '@app/domain';
import type { Transactions, WakeUps } from '@app/queue';
import { afterCommit } from '@app/queue';
import type { EntityManager } from 'typeorm';
import { levelNewcomerStatement } from './fair-queue';

/** A new task and the record that owns it; only tests omit the record. */
export interface NewTask extends Pick<
  ImageTask,
  | 'id'
  | 'kind'
  | 'ownerId'
  | 'finetuneId'
  | 'prompt'
  | 'negativePrompt'
  | 'cfg'
  | 'steps'
  | 'seed'
  | 'scheduler'
  | 'model'
  | 'aspectRatio'
  | 'highResolution'
  | 'outputFormat'
  | 'promptWeighting'
  | 'numImages'
  | 'promptChunks'
  | 'sandbox'
  | 'createdAt'
> {
  generation?: Pick<Generation, 'webhook' | 'metadata'>;
  finetunePrompt?: Pick<FinetunePrompt, 'prompt' | 'webhook' | 'metadata'>;
}

/** Everything one request inserts: all of it or nothing. */
export interface NewTasks {
  ownerId: string;
  /** How many tasks of this owner may wait; 0: no limit. */
  maxQueued: number;
  tasks: readonly NewTask[];
}

/**
 * Whether a request was inserted. If not, its owner's key is revoked, or its limit has no room beside the
 * `queued` tasks that wait.
 */
export type InsertOutcome = { admitted: true } | { admitted: false; revoked: boolean; queued: number };

/**
 * With fewer places left than this in a key's limit of waiting tasks, its requests are counted one after the other.
 * Otherwise they need not be: a key has fewer requests open at once, of one task each.
 */
const fewPlaces = 200;

/** Parameters: the owner, and the number up to which its waiting tasks are counted. */
const lookStatement = `
SELECT (SELECT revoked_at FROM api_keys WHERE id = $1) IS NOT NULL AS revoked,
  (SELECT count(*)::integer FROM (
    SELECT FROM image_tasks WHERE owner_id = $1 AND status = 'queued' LIMIT $2
  ) AS counted) AS queued,
  EXISTS (SELECT FROM image_tasks WHERE owner_id = $1 AND status IN ('queued', 'processing') AND NOT sandbox) AS present`;

/** Writes what a request makes: its tasks, the records that own them, and its owner's place in the fair queue. */
export class TaskIntake {
  constructor(
    private readonly transactions: Transactions,
    private readonly wakeUps: WakeUps,
  ) {}

  /** Resolves when everything is committed and a worker is about to be woken, or when there is no room for it. */
  async insert({ ownerId, maxQueued, tasks }: NewTasks): Promise<InsertOutcome> {
    const outcome = await this.transactions.run(async (manager): Promise<InsertOutcome> => {
      let { revoked, queued, present } = await look(manager, ownerId, maxQueued);
      const room = (): number => maxQueued - queued - tasks.length;
      if (maxQueued > 0 && (tasks.length > 1 || room() < fewPlaces)) {
        await manager.query(`SELECT pg_advisory_xact_lock(hashtextextended('admission ' || $1, 0))`, [ownerId]);
        // Whatever others have committed before the lock was had is seen by a statement that follows it.
        ({ revoked, queued, present } = await look(manager, ownerId, maxQueued));
      }
      if (revoked || (maxQueued > 0 && room() < 0)) return { admitted: false, revoked, queued };
      if (!present && tasks.some(({ sandbox }) => !sandbox)) await manager.query(levelNewcomerStatement, [ownerId]);
      await insertRows(manager, tasks);
      return { admitted: true };
    });
    if (outcome.admitted) await afterCommit(async () => this.wakeUps.ask());
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
  const weights = new Map<string | null, Pick<Finetune, 'weightsHash' | 'weightsScale'> | null>();
  for (const { finetuneId: id } of tasks)
    if (id !== null && !weights.has(id)) weights.set(id, await manager.findOneBy(Finetune, { id }));
  const rows = tasks.map((task) => ({
    ...task,
    status: 'queued' as const,
    weightsHash: weights.get(task.finetuneId)?.weightsHash ?? null,
    weightsScale: weights.get(task.finetuneId)?.weightsScale ?? null,
  }));
  await manager.insert(ImageTask, rows);
  const generations = tasks.flatMap(({ id, ownerId, generation }) =>
    generation ? [{ id, ownerId, ...generation }] : [],
  );
  if (generations.length > 0) await manager.insert(Generation, generations as object[]);
  const prompts = tasks.flatMap(({ id, ownerId, finetuneId, finetunePrompt }) =>
    finetunePrompt ? [{ id, ownerId, finetuneId: finetuneId ?? '', ...finetunePrompt }] : [],
  );
  if (prompts.length > 0) await manager.insert(FinetunePrompt, prompts as object[]);
}
