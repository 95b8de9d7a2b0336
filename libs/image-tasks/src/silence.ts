/** A worker without a heartbeat for this long has lost its task. */
export const heartbeatTimeoutMs = 10_000;

/**
 * Factor of the silence after which a task is taken from its worker, in SQL: doubled with the second death, and so on. This keeps
 * a task that kills its workers away from the others, while a task that was only nearby is not failed for it.
 */
export const silenceFactor = 'power(2, greatest(0, deaths - 1))';

/** A task that was left alone is due this long after its heartbeat, so that a clock that is slightly behind does not delay it further. */
export const leadMs = 2 * heartbeatTimeoutMs;
/** The time until which a task is left alone, in SQL. */
export const leftUntil = `heartbeat_at + ${leadMs} * interval '1 ms'`;
