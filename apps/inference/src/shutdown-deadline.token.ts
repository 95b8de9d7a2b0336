/** Injects the time for a drawing to finish after the process was asked to end. */
export const SHUTDOWN_DEADLINE_MS = Symbol('SHUTDOWN_DEADLINE_MS');
