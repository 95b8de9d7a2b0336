import { isIdentifier, limits } from '@app/domain';
import type { Request, Response } from 'express';
import { badParameter } from './bad-parameter';

/** The requested part of a list; without `limit`, all of it. */
export interface Page {
  limit?: number;
  after?: string;
}

/**
 * The `limit` and `after` query parameters, checked.
 * @throws InvalidError naming the parameter.
 */
export function pageOf({ query }: Request): Page {
  const { limit, after } = query;
  const { min, max } = limits.page;
  const count = limit === undefined ? undefined : Number(limit);
  if (count !== undefined && (typeof limit !== 'string' || !/^\d+$/.test(limit) || count < min || count > max))
    throw badParameter('limit', `must be an integer from ${min} to ${max}`);
  if (after !== undefined && (typeof after !== 'string' || !isIdentifier(after)))
    throw badParameter('after', 'must be the id of an element of this list');
  return { ...(count !== undefined && { limit: count }), ...(after !== undefined && { after }) };
}

/** Links to the next page, after the element with the id `last`, in a `Link` header. */
export function linkNext(request: Request, response: Response, publicUrl: string, last: string): void {
  const url = new URL(request.originalUrl, publicUrl);
  url.searchParams.set('after', last);
  response.setHeader('Link', `<${publicUrl}${url.pathname}${url.search}>; rel="next"`);
}
