import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';

declare module 'express-serve-static-core' {
  interface Request {
    /** Names the request in its answer, in errors and in the logs. */
    id: string;
  }
}

/** Takes the caller's `X-Request-Id` where it is a plain word, else makes one; the answer always carries it. */
export function requestId(request: Request, response: Response, next: NextFunction): void {
  const given = request.header('x-request-id');
  request.id = given && /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : randomUUID();
  response.setHeader('X-Request-Id', request.id);
  next();
}
