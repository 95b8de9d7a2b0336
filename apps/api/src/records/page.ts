import { InvalidError, isIdentifier, limits } from '@app/domain';
import { Query } from '@nestjs/common';
import type { PipeTransform } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';

/** Which part of a list is asked for; without `limit`, all of it. */
export interface Page {
  limit?: number;
  after?: string;
}

/** The `limit` and `after` query parameters, checked. */
export const PageQuery = () => Query(new PagePipe());

class PagePipe implements PipeTransform {
  /** @throws InvalidError naming the parameter. */
  transform({ limit, after }: Record<string, unknown>): Page {
    const { min, max } = limits.page;
    const count = limit === undefined ? undefined : Number(limit);
    if (count !== undefined && (typeof limit !== 'string' || !/^\d+$/.test(limit) || count < min || count > max))
      throw badParameter('limit', `must be an integer from ${min} to ${max}`);
    if (after !== undefined && (typeof after !== 'string' || !isIdentifier(after)))
      throw badParameter('after', 'must be the id of an element of this list');
    return { ...(count !== undefined && { limit: count }), ...(after !== undefined && { after }) };
  }
}

/** A page of rows, and whether more follow. */
export interface PageOf<T> {
  rows: T[];
  more: boolean;
}

/**
 * Newest first by the `seq` column of the query's main alias, from the row after `page.after`.
 * @throws InvalidError when `page.after` is in no row that the query could return.
 */
export async function fetchPage<T extends ObjectLiteral & { id: string; seq: number }>(
  query: SelectQueryBuilder<T>,
  page: Page,
): Promise<PageOf<T>> {
  const { alias } = query;
  if (page.after !== undefined) {
    const cursor = await query.clone().andWhere(`${alias}.id = :after`, { after: page.after }).getOne();
    if (!cursor) throw badParameter('after', 'must be the id of an element of this list');
    query.andWhere(`${alias}.seq < :seq`, { seq: cursor.seq });
  }
  query.orderBy(`${alias}.seq`, 'DESC');
  if (page.limit === undefined) return { rows: await query.getMany(), more: false };
  const rows = await query.limit(page.limit + 1).getMany();
  return { rows: rows.slice(0, page.limit), more: rows.length > page.limit };
}

/** Names the next page in a `Link` header. */
export function linkNext(
  request: Request,
  response: Response,
  publicUrl: string,
  { rows, more }: PageOf<{ id: string }>,
): void {
  const last = rows.at(-1);
  if (!more || !last) return;
  const url = new URL(request.originalUrl, publicUrl);
  url.searchParams.set('after', last.id);
  response.setHeader('Link', `<${publicUrl}${url.pathname}${url.search}>; rel="next"`);
}

/** A query parameter is wrong. */
export function badParameter(name: string, message: string): InvalidError {
  return new InvalidError('ValidationFailed', `The query parameter "${name}" ${message}.`, [
    { pointer: `/${name}`, message },
  ]);
}
