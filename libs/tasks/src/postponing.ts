import { heartbeatTimeoutMs } from './silence';

/**
 * A postponed task is due this long after its heartbeat: its own job may claim it up to `heartbeatTimeoutMs` early,
 * because clocks differ.
 */
export const leadMs = 2 * heartbeatTimeoutMs;
/** The time until which a task is postponed, in SQL. */
export const postponedUntil = `heartbeat_at + ${leadMs} * interval '1 ms'`;
