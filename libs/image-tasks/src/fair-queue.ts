import type { EntityManager } from 'typeorm';
import { changeChannel } from './channels';
import { claimDueStatement } from './statements/claim-due';
import { olderTasksStatement, ownersByTurnStatement } from './statements/queue-positions';

/** What runs one statement. */
type Queryable = Pick<EntityManager, 'query'>;

/** How often a claim is tried again whose slot another worker took at the same moment. */
const claimTries = 5;
const uniqueViolation = '23505';

/** @returns the id of the task that was claimed; undefined when none is due. */
export async function claimNext(
  database: Queryable,
  ticket: string,
  { maxConcurrent, silenceMs }: { maxConcurrent: number; silenceMs: number },
): Promise<string | undefined> {
  for (let left = claimTries; ; left--)
    try {
      const parameters = [ticket, maxConcurrent, changeChannel, silenceMs];
      const [claimed] = await database.query<{ id: string }[]>(claimDueStatement, parameters);
      return claimed?.id;
    } catch (error) {
      if ((error as { code?: string }).code !== uniqueViolation || left === 0) throw error;
    }
}

/** How many tasks wait that no worker may take now, counted up to `most`. */
export async function countWaiting(database: Queryable, most: number): Promise<number> {
  const [{ count }] = await database.query<{ count: number }[]>(
    `SELECT count(*)::integer AS count
     FROM (SELECT 1 FROM image_tasks WHERE status = 'queued' AND NOT sandbox LIMIT $1) counted`,
    [most],
  );
  return count;
}

/**
 * How many tasks are likely to be drawn before each of these: those of its owner that are older, and as many of every other
 * owner, as if all were equally dear; one more of an owner whose turn is before. Two statements that pass over what is queued
 * once, however many tasks are asked for, and then as many additions as there are owners for each.
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
 * Replaces the estimate that a claimed task was charged by what it took.
 * @param seconds of compute; undefined where nobody measured: the time since it started, and at most the estimate.
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
