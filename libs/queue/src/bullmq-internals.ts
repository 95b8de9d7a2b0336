import { SteadyClient } from '@app/database';
import type { IQueueBackend, PostgresConnection, PostgresQueueBackend } from 'bullmq';

// All that we know of BullMQ beyond its types: private fields of 6.7.0. `bullmq-internals.spec.ts` finds
// a version without them.

/**
 * A back end with some methods of ours; all others are those of `backend`, which stays as it is. What `backend` calls
 * of itself is its own: in 6.7.0 that is `moveToActive` behind `moveToDelayed`, of the four methods that we replace.
 */
export function withMethods<B extends IQueueBackend>(backend: B, methods: Partial<IQueueBackend>): B {
  return new Proxy(backend, {
    get(target, name) {
      if (Object.hasOwn(methods, name)) return methods[name as keyof IQueueBackend];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/**
 * Has the LISTEN connection made of our client, as the pool's connections are. There is no option for it: BullMQ calls
 * `pgModule.Client`, whatever the pool's options name.
 */
export function listenWithSteadyClient(connection: PostgresConnection): void {
  Object.assign(connection, { pgModule: { Client: SteadyClient } });
}

/** Makes the next use open another LISTEN connection: BullMQ keeps one that was lost while it subscribed. */
export function forgetListenClient(connection: PostgresConnection): void {
  Object.assign(connection, { listenClient: undefined, listenClientPromise: undefined });
}

/** Makes the next use connect again: BullMQ keeps a failed first attempt for good. */
export function forgetFirstAttempt(of: PostgresConnection | PostgresQueueBackend): void {
  Object.assign(of, { readyPromise: undefined });
}
