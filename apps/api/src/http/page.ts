import { isIdentifier, limits } from '@app/domain';
import type { Request, Response } from 'express';
import { badParameter, QueryProblems } from './query-problems';

/** The requested part of a list; without `limit`, all of it. */
export interface Page {
  limit?: number;
  /** The id of an element, or a cursor. */
  after?: string;
}

/** A cursor is shorter than an id, so that the two cannot be confused. */
const cursor = /^[A-Za-z0-9_-]{22}$/;

/**
 * The `limit` and `after` query parameters, checked.
 * @throws InvalidError naming the parameters that are wrong
 */
export function pageOf({ query }: Request): Page {
  const problems = new QueryProblems();
  const { limit, after } = query;
  const { min, max } = limits.page;
  const count = limit === undefined ? undefined : Number(limit);
  if (count !== undefined && (typeof limit !== 'string' || !/^\d+$/.test(limit) || count < min || count > max))
    problems.add('limit', `must be an integer from ${min} to ${max}`);
  const isPosition = typeof after === 'string' && (isIdentifier(after) || cursor.test(after));
  if (after !== undefined && !isPosition) problems.add('after', acceptedAfter);
  problems.throwIfAny();
  return { ...(count !== undefined && { limit: count }), ...(isPosition && { after }) };
}

const acceptedAfter = 'must be the id of an element of this list, or be taken from the Link header of a page';

/** The error for an `after` that is nothing of this list. */
export function badAfter(): Error {
  return badParameter('after', acceptedAfter);
}

/** Links to the next page, from a cursor on, in a `Link` header. */
export function linkNext(request: Request, response: Response, publicUrl: string, after: string): void {
  const url = new URL(request.originalUrl, publicUrl);
  url.searchParams.set('after', after);
  response.setHeader('Link', `<${publicUrl}${url.pathname}${url.search}>; rel="next"`);
}
