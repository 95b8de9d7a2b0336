import type { NestExpressApplication } from '@nestjs/platform-express';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { Express } from 'express';
import { boundReaders } from './bound-readers';
import { projectFile } from './project-file';

/** Readers of the documentation at a time: each may be anybody. */
export const maxReaders = 200;

/**
 * Serves `/openapi.json`, which needs no key, and bounds the readers of `/docs`, whose pages the page's module
 * serves. The document is the committed one, which a test compares with the routes: to make it takes longer
 * than all else of a start.
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
