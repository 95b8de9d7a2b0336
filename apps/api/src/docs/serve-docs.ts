import type { NestExpressApplication } from '@nestjs/platform-express';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { Express } from 'express';
import { boundReaders } from './bound-readers';
import { createDocument } from './document';

/** Readers of the documentation at a time: each may be anybody. */
export const maxReaders = 200;

/**
 * Serves `/openapi.json`, which needs no key, and bounds the readers of `/docs`, whose pages the page's module serves.
 * @returns builds the document, so that the first request does not have to
 */
export function serveDocs(app: NestExpressApplication, publicUrl: string): () => void {
  let document: OpenAPIObject | undefined;
  let text: Buffer | undefined;
  const built = (): OpenAPIObject => (document ??= createDocument(app, publicUrl));
  const express: Express = app.getHttpAdapter().getInstance();
  express.get('/openapi.json', (_request, response) => {
    text ??= Buffer.from(JSON.stringify(built()));
    response.type('application/json').send(text);
  });
  app.use('/docs', boundReaders(maxReaders));
  return built;
}
