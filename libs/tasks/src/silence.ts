import type { DatabaseContact } from '@app/database';
import { fatalCount } from './deaths';

/** A worker that is silent for longer has lost its task. */
export const heartbeatTimeoutMs = 10_000;

/**
 * In SQL: the factor of the silence after which a task is taken from its worker. It is 1 up to the first death, then 2,
 * 4 and so on: a task that kills its workers comes back less and less often, and a task that was only beside it is not
 * failed. It ends at 8, because a training may have more deaths. After the last try the factor is 2 again: the task is
 * only failed then, which endangers no worker; the wait makes sure that the last one is dead.
 */
const silenceFactor = `(CASE WHEN deaths >= ${fatalCount - 1} AND drawn_alone THEN 2 ELSE power(2, least(3, greatest(0, deaths - 1))) END)`;

/**
 * In SQL: whether a task's worker has been silent for too long, with `silenceFactor`.
 * @param until parameter with the time of `silenceUntil`
 */
export const isSilent = (until: string): string =>
  `heartbeat_at < CAST(${until} AS timestamptz) - ${heartbeatTimeoutMs} * ${silenceFactor} * interval '1 ms'`;

/** Two heartbeats and some time: by then every live worker has sent one, if the database takes them. */
const contactMs = heartbeatTimeoutMs / 2;

/**
 * The time up to which a worker's silence counts for this process; null, so that nobody is silent, until it has had the
 * database for some time: after an outage all look silent. Not the time at which the statement runs, which may have
 * been on its way during an outage.
 */
export const silenceUntil = ({ heldMs, databaseMs }: DatabaseContact): Date | null =>
  heldMs < contactMs ? null : new Date(databaseMs);
