/** Injects the configuration that was read at start. */
export const CONFIG = Symbol('CONFIG');
