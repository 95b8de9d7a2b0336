import type { EntityManager } from 'typeorm';
import { olderTasksStatement, ownersByTurnStatement } from './statements/queue-positions';

/** What runs one statement. */
type Queryable = Pick<EntityManager, 'query'>;

/**
 * How many tasks are likely to be drawn before each of these: the owner's older ones, and the same number of every
 * other owner's, as if all cost the same; one more of owners whose turn comes first. Two statements scan the queue
 * once, however many tasks are asked for; then each task takes as many additions as there are owners.
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
 * @param seconds of compute; undefined if nobody measured them: then the time since it started
 * counts, up to the estimate.
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
