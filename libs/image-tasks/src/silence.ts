/** A worker that has not said it is alive for this long has lost its task. */
export const heartbeatTimeoutMs = 10_000;

/**
 * Factor of the silence after which a task is taken from its worker, in SQL: twice as long after the second death, and so on.
 * One that takes its workers down is so kept apart from all others, and one that was only near is not given up for it.
 */
export const silenceFactor = 'power(2, greatest(0, deaths - 1))';

/** A task that was left alone is due this long after its heartbeat, so that no clock that is a little behind holds it any longer. */
export const leadMs = 2 * heartbeatTimeoutMs;
/** Until when a task was left alone, in SQL. */
export const leftUntil = `heartbeat_at + ${leadMs} * interval '1 ms'`;
