import type { EntityManager } from 'typeorm';
import { changeChannel } from './channels';
import { claimDueStatement } from './statements/claim-due';
import { countWaitingStatement, ownStatement } from './statements/offers';
import { olderTasksStatement, ownersByTurnStatement } from './statements/queue-positions';

/** What runs one statement. */
type Queryable = Pick<EntityManager, 'query'>;

/** How often a claim is retried when another worker took its slot at the same moment. */
const claimTries = 5;
const uniqueViolation = '23505';

/** What a worker wants to draw now. */
export interface Wanted {
  /** Owners whose queued tasks are not wanted. */
  except?: readonly string[];
  /** Models that it can draw; undefined: any. */
  models?: readonly string[];
  /** What it has loaded, as `weightsLabel` names it: owners who need just this go first, within bounds. */
  loaded?: readonly string[];
  /** Whether it takes tasks that no worker can draw, to fail them. */
  strays?: boolean;
}

/** @returns the id of the claimed task; undefined if none is due. */
export async function claimNext(
  database: Queryable,
  ticket: string,
  {
    maxConcurrent,
    silenceMs,
    except = [],
    models,
    strays = false,
    loaded = [],
  }: Wanted & { maxConcurrent: number; silenceMs: number },
): Promise<string | undefined> {
  for (let left = claimTries; ; left--)
    try {
      const parameters = [ticket, maxConcurrent, changeChannel, silenceMs, except, models ?? null, strays, loaded];
      const [claimed] = await database.query<{ id: string }[]>(claimDueStatement, parameters);
      return claimed?.id;
    } catch (error) {
      if ((error as { code?: string }).code !== uniqueViolation || left === 0) throw error;
    }
}

/** The task that a ticket claimed before and that has not ended, and whether it is offered to this worker. */
export async function findOwn(
  database: Queryable,
  ticket: string,
  { models, strays = false }: Pick<Wanted, 'models' | 'strays'>,
): Promise<{ id: string; offered: boolean } | undefined> {
  const [own] = await database.query<{ id: string; offered: boolean }[]>(ownStatement, [
    ticket,
    models ?? null,
    strays,
  ]);
  return own;
}

/** Tasks that wait and that this worker may not take now. */
export interface Waiting {
  /** Counted up to `most`. */
  count: number;
  /** Whether some are of models that it cannot draw. */
  forOthers: boolean;
}

export async function countWaiting(database: Queryable, most: number, models?: readonly string[]): Promise<Waiting> {
  const [waiting] = await database.query<Waiting[]>(countWaitingStatement, [most, models ?? null]);
  return waiting;
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
