import type { Reply } from './reply.ts';

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

/** Where the next page begins; undefined on the last. */
function nextOf(response: Response): string | undefined {
  const url = /<([^<>]+)>; ?rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
  return url === undefined
    ? undefined
    : (new URL(url, response.url || undefined).searchParams.get('after') ?? undefined);
}
