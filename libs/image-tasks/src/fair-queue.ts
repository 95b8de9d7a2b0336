import type { EntityManager } from 'typeorm';
import { changeChannel } from './channels';
import { claimDueStatement } from './statements/claim-due';
import { olderTasksStatement, ownersByTurnStatement } from './statements/queue-positions';

/** What runs one statement. */
type Queryable = Pick<EntityManager, 'query'>;

/** How often a claim is retried when another worker took its slot at the same moment. */
const claimTries = 5;
const uniqueViolation = '23505';

/** @returns the id of the claimed task; undefined if none is due. */
export async function claimNext(
  database: Queryable,
  ticket: string,
  { maxConcurrent, silenceMs, except }: { maxConcurrent: number; silenceMs: number; except: readonly string[] },
): Promise<string | undefined> {
  for (let left = claimTries; ; left--)
    try {
      const parameters = [ticket, maxConcurrent, changeChannel, silenceMs, except];
      const [claimed] = await database.query<{ id: string }[]>(claimDueStatement, parameters);
      return claimed?.id;
    } catch (error) {
      if ((error as { code?: string }).code !== uniqueViolation || left === 0) throw error;
    }
}

/** The number of waiting tasks that no worker may take now, counted up to `most`. */
export async function countWaiting(database: Queryable, most: number): Promise<number> {
  const [{ count }] = await database.query<{ count: number }[]>(
    `SELECT count(*)::integer AS count
     FROM (SELECT 1 FROM image_tasks WHERE status = 'queued' AND NOT sandbox LIMIT $1) counted`,
    [most],
  );
  return count;
}

/**
 * How many tasks are likely to be drawn before each of these: the owner's older ones, and the same number of every other owner's,
 * as if all cost the same; one more of owners whose turn comes first. Two statements scan the queue once, however many tasks are
 * asked for; then each task takes as many additions as there are owners.
 * @returns a position for each of them that is queued for an engine.
 */
export async function queuePositions(database: Queryable, taskIds: readonly string[]): Promise<Map<string, number>> {
  const owners = await database.query<{ id: string; count: number }[]>(ownersByTurnStatement);
  const tasks = await database.query<{ id: string; owner: string; older: number }[]>(olderTasksStatement, [taskIds]);
  const turns = new Map(owners.map(({ id }, turn) => [id, turn]));
  return new Map(
    tasks.map(({ id, owner, older }) => {
      const own = turns.get(owner) ?? owners.length;
      const others = owners.map(({ count }, turn) =>
        turn === own ? 0 : Math.min(count, older + (turn < own ? 1 : 0)),
      );
      return [id, others.reduce((sum, count) => sum + count, older)];
    }),
  );
}

/**
 * Replaces the estimate that was charged for a claimed task by its real cost.
 * @param seconds of compute; undefined if nobody measured them: then the time since it started counts, up to the estimate.
 */
export async function correctCharge(database: Queryable, taskId: string, seconds: number | undefined): Promise<void> {
  await database.query(
    `UPDATE fair_shares share SET virtual_time = share.virtual_time - task.charged_seconds
       + coalesce($2, least(task.charged_seconds, extract(epoch FROM clock_timestamp() - task.started_at)))
     FROM image_tasks task
     WHERE task.id = $1 AND task.charged_seconds > 0 AND share.owner_id = task.owner_id`,
    [taskId, seconds ?? null],
  );
}
