import type { RequestHandler, Response } from 'express';

/** Middleware that ends the first of too many responses, so that slow readers do not keep others out. */
export function boundReaders(most: number): RequestHandler {
  const responses = new Set<Response>();
  return (_request, response, next) => {
    const [first] = responses;
    if (responses.size >= most) first.destroy();
    responses.add(response);
    response.once('close', () => responses.delete(response));
    next();
  };
}
