import { FieldProblems } from '@app/domain';
import { acceptedAfter } from '@app/domain/http';
import type { Request, Response } from 'express';

/** @throws InvalidError for an `after` that is nothing of this list */
export function refuseAfter(): void {
  const problems = new FieldProblems();
  problems.addParameter('after', acceptedAfter);
  problems.throwIfAny();
}

/** Links to the next page, from a cursor on, in a `Link` header. */
export function linkNext(request: Request, response: Response, publicUrl: string, after: string): void {
  const url = new URL(request.originalUrl, publicUrl);
  url.searchParams.set('after', after);
  response.setHeader('Link', `<${publicUrl}${url.pathname}${url.search}>; rel="next"`);
}
