import { fatalCount } from './deaths';

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
