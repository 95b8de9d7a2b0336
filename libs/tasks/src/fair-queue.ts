import type { EntityManager } from 'typeorm';
import { headsOfWorkerQueues } from './statements/queue-heads';
import { olderTasksStatement, ownersByTurnStatement } from './statements/queue-positions';

/**
 * Raises the virtual time of an owner who comes anew to the lowest of those with something to draw: idle time earns no
 * priority. Tasks in progress count as not yet charged, because their estimate may be far too high. Parameter: the
 * owner.
 */
export const levelNewcomerStatement = `
WITH RECURSIVE ${headsOfWorkerQueues.statements},
drawing AS (
  SELECT owner_id, sum(charged_seconds) AS charged FROM tasks
  WHERE status = 'processing' AND NOT sandbox GROUP BY owner_id
)
INSERT INTO fair_shares (owner_id, virtual_time)
SELECT $1, coalesce(min(share.virtual_time - coalesce(drawing.charged, 0)), 0)
FROM (${[...headsOfWorkerQueues.names, 'drawing'].map((name) => `SELECT owner_id FROM ${name}`).join(' UNION ')}) AS present
JOIN fair_shares AS share USING (owner_id) LEFT JOIN drawing USING (owner_id)
ON CONFLICT (owner_id) DO UPDATE SET virtual_time = greatest(fair_shares.virtual_time, excluded.virtual_time)`;

/** Runs a statement: an entity manager or a data source. */
export type Queryable = Pick<EntityManager, 'query'>;

/**
 * How many tasks are likely to be drawn before each of these: the owner's older ones, and as many of every other
 * owner's, as if all cost the same; one more of owners whose turn comes first. Two statements scan the queue once,
 * however many tasks are asked for; then each task takes as many additions as there are owners.
 * @returns a position for each of them that is queued for a worker.
 */
export async function queuePositions(database: Queryable, taskIds: readonly string[]): Promise<Map<string, number>> {
  const all = await database.query<{ queue: string; id: string; count: number }[]>(ownersByTurnStatement);
  const tasks = await database.query<{ id: string; queue: string; owner: string; older: number }[]>(
    olderTasksStatement,
    [taskIds],
  );
  return new Map(
    tasks.map(({ id, queue, owner, older }) => {
      const owners = all.filter((each) => each.queue === queue);
      const own = owners.findIndex(({ id: each }) => each === owner);
      const others = owners.map(({ count }, turn) =>
        turn === own ? 0 : Math.min(count, older + (turn < own ? 1 : 0)),
      );
      return [id, others.reduce((sum, count) => sum + count, older)];
    }),
  );
}

/**
 * Replaces the estimate that was charged for a claimed task by its real cost.
 * @param seconds of compute; undefined if nobody measured them: then the time since its attempt began counts, up to the
 * estimate.
 */
export async function correctCharge(database: Queryable, taskId: string, seconds: number | undefined): Promise<void> {
  await database.query(
    `UPDATE fair_shares share SET virtual_time = share.virtual_time - task.charged_seconds
       + coalesce($2, least(task.charged_seconds, extract(epoch FROM clock_timestamp() - coalesce(task.claimed_at, task.started_at))))
     FROM tasks task
     WHERE task.id = $1 AND task.charged_seconds > 0 AND share.owner_id = task.owner_id`,
    [taskId, seconds ?? null],
  );
}
