import type { RequestHandler, Response } from 'express';

/** Middleware that ends the first of too many responses, so that slow readers do not keep others out. */
export function boundReaders(most: number): RequestHandler {
  const responses = new Set<Response>();
  return (_request, response, next) => {
    if (responses.size >= most) {
      const [first] = responses;
      // Its `close` comes later, and until then the next one would end it again in place of another.
      responses.delete(first);
      first.destroy();
    }
    responses.add(response);
    response.once('close', () => responses.delete(response));
    next();
  };
}
