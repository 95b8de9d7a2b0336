import type { NextFunction, Request, Response } from 'express';

/** Answers about a caller's records, errors included, are kept by no cache, shared or the browser's own. */
export function privateJson(request: Request, response: Response, next: NextFunction): void {
  // Routes are found whatever the case of a path.
  if (/^\/v1(?:\/|$)/i.test(request.path)) response.setHeader('Cache-Control', 'private, no-store');
  next();
}
