import type { Connection, RequestOptions } from './connection.ts';
import type { EventOptions } from './events.ts';
import { follow } from './events.ts';
import { pagesOf } from './pages.ts';
import type { Deleted } from './types.ts';

type Query = Readonly<Record<string, string | number | undefined>>;
type PageQuery = Query & { limit?: number; after?: string };
/** The requests of a connection. */
export type Verbs = ReturnType<typeof verbsOf>;

export function verbsOf(connection: Connection) {
  return {
    get: <T>(path: string, query: Query = {}, more?: RequestOptions) =>
      connection.send<T>('GET', path, { ...more, query }),
    post: <T>(path: string, json: unknown, more?: RequestOptions) =>
      connection.send<T>('POST', path, { ...more, json }),
    patch: <T>(path: string, json: unknown, more?: RequestOptions) =>
      connection.send<T>('PATCH', path, { ...more, json }),
    putBytes: <T>(path: string, bytes: Uint8Array | Blob, query: Query = {}, more?: RequestOptions) =>
      connection.send<T>('PUT', path, { ...more, query, bytes }),
    remove: (path: string, more?: RequestOptions) => connection.send<Deleted>('DELETE', path, more),
    pages: <T, Q extends PageQuery>(path: string, query?: Q, more?: RequestOptions) =>
      pagesOf((page: Q) => connection.send<T[]>('GET', path, { ...more, query: page }), query),
    events: <T>(path: string, options?: EventOptions) => follow<T>(connection, path, options),
  };
}
