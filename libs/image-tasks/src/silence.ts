import type { ImageTask } from '@app/domain';
import { fatalCount } from './fatal-count';

/** A worker without a heartbeat for this long has lost its task. */
export const heartbeatTimeoutMs = 10_000;

/** Silence after which a sweeper makes a new job: the queue itself reassigns a dead process's job long before, so the job was lost. */
export const abandonedMs = 3 * heartbeatTimeoutMs;

/**
 * Factor of the silence after which a task is taken from its worker, in SQL: doubled with the second death, and so on. This keeps
 * a task that kills its workers away from the others, while a task that was only nearby is not failed for it. A task whose last try
 * this was is not drawn again, so it needs to be kept away from nobody: that its worker has died only has to be sure.
 */
export const silenceFactor = `(CASE WHEN deaths >= ${fatalCount - 1} AND drawn_alone THEN 2 ELSE power(2, greatest(0, deaths - 1)) END)`;

/**
 * A task's deaths after its worker has fallen silent once more. The first is a suspicion, because any task that was there may have
 * caused it; from then on the task is drawn alone, and what happens before or after that is not its fault.
 */
export const deathsAfter = ({ deaths, drawnAlone }: Pick<ImageTask, 'deaths' | 'drawnAlone'>): number =>
  deaths === 0 || drawnAlone ? deaths + 1 : deaths;
/** What `deathsAfter` computes, in SQL. */
export const deathsAfterSilence = '(deaths + (deaths = 0 OR drawn_alone)::integer)';

/** A postponed task is due this long after its heartbeat: its own job may claim it up to `heartbeatTimeoutMs` early, because clocks differ. */
export const leadMs = 2 * heartbeatTimeoutMs;
/** The time until which a task is postponed, in SQL. */
export const postponedUntil = `heartbeat_at + ${leadMs} * interval '1 ms'`;
