import type { RequestOptions } from './connection.ts';
import { pathOf, type Verbs } from './requests.ts';
import type { operations } from './schema.ts';
import type { QueryOf } from './types.ts';

/** The requests that every kind of record has. `list` and `pages` take the query of the operation `Name`. */
export function recordsOf<T, Name extends keyof operations>({ get, remove, pages }: Verbs, path: string) {
  return {
    list: (query?: QueryOf<Name>, more?: RequestOptions) => get<T[]>(path, query, more),
    /** The list as arrays of up to `limit` (100), each its own request. */
    pages: (query?: QueryOf<Name>, more?: RequestOptions) => pages<T, QueryOf<Name>>(path, query, more),
    get: (id: string, more?: RequestOptions) => get<T>(pathOf(path, id), {}, more),
    delete: (id: string, more?: RequestOptions) => remove(pathOf(path, id), more),
  };
}
