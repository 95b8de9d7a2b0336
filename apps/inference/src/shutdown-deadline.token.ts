/** Injects what a drawing may take to finish once the process is asked to end. */
export const SHUTDOWN_DEADLINE_MS = Symbol('SHUTDOWN_DEADLINE_MS');
