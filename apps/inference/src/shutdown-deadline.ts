/** Injects the time for a drawing to finish after the worker was asked to end, in milliseconds. */
export const SHUTDOWN_DEADLINE_MS = Symbol('SHUTDOWN_DEADLINE_MS');
