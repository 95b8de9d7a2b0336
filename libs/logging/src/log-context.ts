import { AsyncLocalStorage } from 'node:async_hooks';

const context = new AsyncLocalStorage<Readonly<Record<string, unknown>>>();

/** Runs work whose every log line carries these fields, such as the id of the request that it is done for. */
export function withLogFields<T>(fields: Readonly<Record<string, unknown>>, work: () => T): T {
  return context.run({ ...context.getStore(), ...fields }, work);
}

/** The fields of the work that is being done. */
export function currentLogFields(): Readonly<Record<string, unknown>> {
  return context.getStore() ?? {};
}
