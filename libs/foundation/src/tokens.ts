/** Injects the configuration. */
export const CONFIG = Symbol('CONFIG');

/** Injects the time for a drawing to finish after the worker was asked to end, in milliseconds. */
export const SHUTDOWN_DEADLINE_MS = Symbol('SHUTDOWN_DEADLINE_MS');

/** Injects the back end of the queues. */
export const JOB_BACK_END = Symbol('JOB_BACK_END');

/** Injects the storage of pictures. */
export const IMAGE_STORAGE = Symbol('IMAGE_STORAGE');
