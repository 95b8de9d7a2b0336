import type { Connection, RequestOptions } from './connection.ts';
import { type EventOptions, follow } from './events.ts';
import type { Reply } from './reply.ts';
import type { Deleted } from './types.ts';

/**
 * A path below another.
 * @param segments ids and fixed names.
 * @throws TypeError for anything else, such as the empty text, `..` or, from JavaScript, undefined: the request would
 * go to another path.
 */
export function pathOf(parent: string, ...segments: string[]): string {
  for (const segment of segments as unknown[])
    if (typeof segment !== 'string' || !/^[A-Za-z0-9_-]+$/.test(segment))
      throw new TypeError(`${shown(segment)} is not an id: these have letters, digits, "_" and "-".`);
  return [parent, ...segments].join('/');
}

/** Quotes a text; of anything else says what it is. */
function shown(value: unknown): string {
  if (typeof value === 'string') return `"${value}"`;
  return value === null || value === undefined ? String(value) : `A value of type ${typeof value}`;
}

/**
 * The pages of a list, as arrays, one request each.
 * @param list sends the request of a page, with the query that says where it begins.
 */
export async function* pagesOf<T, Q extends { limit?: number; after?: string }>(
  list: (query: Q) => Reply<T[]>,
  query: Q = {} as Q,
): AsyncGenerator<T[], void, undefined> {
  let next: string | undefined = query.after;
  do {
    const page = { ...query, limit: query.limit ?? 100, ...(next !== undefined && { after: next }) };
    const { data, response } = await list(page).withResponse();
    if (data.length > 0) yield data;
    next = nextOf(response);
  } while (next !== undefined);
}

/** Undefined on the last page. */
function nextOf(response: Response): string | undefined {
  const url = /<([^<>]+)>; ?rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
  return url === undefined
    ? undefined
    : (new URL(url, response.url || undefined).searchParams.get('after') ?? undefined);
}

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
    postBytes: <T>(path: string, bytes: Uint8Array | Blob, more?: RequestOptions) =>
      connection.send<T>('POST', path, { ...more, bytes }),
    putBytes: <T>(path: string, bytes: Uint8Array | Blob, query: Query = {}, more?: RequestOptions) =>
      connection.send<T>('PUT', path, { ...more, query, bytes }),
    file: (path: string, query: Query = {}, more?: RequestOptions) => connection.file(path, { ...more, query }),
    remove: (path: string, more?: RequestOptions) => connection.send<Deleted>('DELETE', path, more),
    pages: <T, Q extends PageQuery>(path: string, query?: Q, more?: RequestOptions) =>
      pagesOf((page: Q) => connection.send<T[]>('GET', path, { ...more, query: page }), query),
    events: <T>(path: string, options?: EventOptions) => follow<T>(connection, path, options),
  };
}
