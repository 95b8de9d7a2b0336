import type { DatabaseContact } from '@app/database';
import { ImageTask } from '@app/domain';
import type { Transactions } from '@app/queue';
import type { EntityManager } from 'typeorm';
import { announce, changeChannel } from './channels';
import { deathsAfterSilence } from './deaths';
import { heartbeatTimeoutMs, isSilent, silenceUntil } from './silence';
import { claimDueStatement } from './statements/claim-due';
import { countWaitingStatement, ownStatement } from './statements/offers';

/** What a worker wants to draw now. */
export interface Wanted {
  /** Owners whose queued tasks are not wanted. */
  except?: readonly string[];
  /** Models that it can draw; undefined: any. */
  models?: readonly string[];
  /** What it has loaded, as `weightsLabel` names it: owners who need just this go first, within bounds. */
  loaded?: readonly string[];
  /** Whether it takes tasks that no worker can draw, to fail them. */
  undrawable?: boolean;
}

/**
 * Result of claiming one task. `settled` is also one that is queued with another ticket than the one it is claimed with:
 * this ticket is settled.
 */
export type Claim = { kind: 'claimed'; task: ImageTask } | { kind: 'settled' } | { kind: 'held' };

/**
 * Result of using a ticket: a task, `none` if nothing is queued, or nothing that may be drawn here before `retryMs`.
 * `forOthers`: something waits that this worker cannot draw, so the ticket should go to another.
 */
export type DueClaim =
  { kind: 'claimed'; task: ImageTask } | { kind: 'none' } | { kind: 'wait'; retryMs: number; forOthers: boolean };

/** How soon a task that another worker holds is looked at again: one heartbeat. */
const heldRetryMs = heartbeatTimeoutMs / 5;
/**
 * When tasks wait but none may be drawn, the delay per waiting task before the ticket is used again. So the tickets of
 * a key at its limit return 20 times a second in total, however many there are, within these bounds.
 */
const waitingRetryMs = { each: 50, least: 500, most: 30_000 };

/** How often a claim is retried when another worker took its slot at the same moment. */
const claimTries = 5;
const uniqueViolation = '23505';

export async function claimDue(
  transactions: Transactions,
  contact: DatabaseContact,
  ticket: string,
  { maxConcurrent, ...wanted }: Wanted & { maxConcurrent: number },
): Promise<DueClaim> {
  const { manager } = transactions;
  const { models, undrawable } = wanted;
  const own = await findOwn(manager, ticket, { models, undrawable });
  if (own?.offered === false) return { kind: 'wait', retryMs: heldRetryMs, forOthers: true };
  const claim = own && (await claimOne(transactions, contact, own.id, ticket));
  if (claim?.kind === 'claimed') return claim;
  if (claim?.kind === 'held') return { kind: 'wait', retryMs: heldRetryMs, forOthers: false };
  const id = await claimNext(manager, ticket, { maxConcurrent, silentUntil: silenceUntil(contact), ...wanted });
  const task = id === undefined ? null : await manager.findOneBy(ImageTask, { id, ticket, status: 'processing' });
  if (task) return { kind: 'claimed', task };
  const { each, least, most } = waitingRetryMs;
  const { count, forOthers } = await countWaiting(manager, most / each, models);
  return count === 0 ? { kind: 'none' } : { kind: 'wait', retryMs: Math.max(least, each * count), forOthers };
}

/**
 * @param ticket of the task, if it is claimed only while it has this one: a task that is put back waits for a new one
 */
export function claimOne(
  transactions: Transactions,
  contact: DatabaseContact,
  taskId: string,
  ticket?: string,
): Promise<Claim> {
  return transactions.run(async ({ manager }) => {
    const { affected } = await manager
      .createQueryBuilder()
      .update(ImageTask)
      .set({
        status: 'processing',
        attempt: () => 'attempt + 1',
        startedAt: () => `coalesce(started_at, now())`,
        heartbeatAt: () => 'now()',
        // No engine draws sandbox tasks, so none can be the reason of their worker's death.
        deaths: () => `CASE WHEN status = 'processing' AND NOT sandbox THEN ${deathsAfterSilence} ELSE deaths END`,
        drawnAlone: false,
      })
      .where('id = :taskId', { taskId })
      .andWhere(ticket === undefined ? 'TRUE' : 'ticket = :ticket', { ticket })
      .andWhere(`(status = 'queued' OR (status = 'processing' AND ${isSilent(':until')}))`, {
        until: silenceUntil(contact),
      })
      .execute();
    const task = await manager.findOneBy(ImageTask, { id: taskId });
    if (affected && task) {
      await announce(manager, [changeChannel], [taskId]);
      return { kind: 'claimed', task };
    }
    return task?.status === 'processing' ? { kind: 'held' } : { kind: 'settled' };
  });
}

/** @returns the id of the claimed task; undefined if none is due. */
async function claimNext(
  database: EntityManager,
  ticket: string,
  {
    maxConcurrent,
    silentUntil,
    except = [],
    models,
    undrawable = false,
    loaded = [],
  }: Wanted & { maxConcurrent: number; silentUntil: Date | null },
): Promise<string | undefined> {
  for (let left = claimTries; ; left--)
    try {
      const parameters = [
        ticket,
        maxConcurrent,
        changeChannel,
        silentUntil,
        except,
        models ?? null,
        undrawable,
        loaded,
      ];
      const [claimed] = await database.query<{ id: string }[]>(claimDueStatement, parameters);
      return claimed?.id;
    } catch (error) {
      if ((error as { code?: string }).code !== uniqueViolation || left === 0) throw error;
    }
}

/** The task that a ticket claimed before and that has not ended, and whether it is offered to this worker. */
async function findOwn(
  database: EntityManager,
  ticket: string,
  { models, undrawable = false }: Pick<Wanted, 'models' | 'undrawable'>,
): Promise<{ id: string; offered: boolean } | undefined> {
  const [own] = await database.query<{ id: string; offered: boolean }[]>(ownStatement, [
    ticket,
    models ?? null,
    undrawable,
  ]);
  return own;
}

/** Tasks that wait and that this worker may not take now. */
interface Waiting {
  /** Counted up to `most`. */
  count: number;
  /** Whether some are of models that it cannot draw. */
  forOthers: boolean;
}

async function countWaiting(database: EntityManager, most: number, models?: readonly string[]): Promise<Waiting> {
  const [waiting] = await database.query<Waiting[]>(countWaitingStatement, [most, models ?? null]);
  return waiting;
}
