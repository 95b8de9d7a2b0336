import { projectFile } from '@app/process';
import type { Express, RequestHandler, Response } from 'express';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { OpenAPIObject } from '@nestjs/swagger';

/** Middleware that ends the oldest response when there are too many, so that slow readers do not keep others out. */
export function boundReaders(most: number): RequestHandler {
  const responses = new Set<Response>();
  return (_request, response, next) => {
    if (responses.size >= most) {
      const [first] = responses;
      // Its `close` comes later; until then the next request would end it again instead of another.
      responses.delete(first);
      first.destroy();
    }
    responses.add(response);
    response.once('close', () => responses.delete(response));
    next();
  };
}

/** Readers of the documentation at a time, who need no key. */
export const maxReaders = 200;

/**
 * Serves `/openapi.json`, which needs no key, and bounds the readers of `/docs`, which the page's module serves. The
 * document is the committed one, which a test compares with the routes: making it takes longer than the rest of a
 * start.
 */
export function serveDocs(app: NestExpressApplication, publicUrl: string): void {
  let text: Buffer | undefined;
  const express: Express = app.getHttpAdapter().getInstance();
  express.get('/openapi.json', (_request, response) => {
    text ??= served(projectFile('openapi.json'), publicUrl);
    response.type('application/json').send(text);
  });
  app.use('/docs', boundReaders(maxReaders));
}

function served(committed: string, url: string): Buffer {
  const { servers = [], ...document } = JSON.parse(committed) as OpenAPIObject;
  return Buffer.from(JSON.stringify({ ...document, servers: [{ url, description: 'This service.' }, ...servers] }));
}
