import type { NextFunction, Request, Response } from 'express';

/** Answers about a caller's records, errors included, are kept by no cache, shared or the browser's own. */
export function privateJson(request: Request, response: Response, next: NextFunction): void {
  if (request.path === '/v1' || request.path.startsWith('/v1/'))
    response.setHeader('Cache-Control', 'private, no-store');
  next();
}
