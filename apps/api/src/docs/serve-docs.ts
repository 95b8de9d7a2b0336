import type { NestExpressApplication } from '@nestjs/platform-express';
import type { OpenAPIObject } from '@nestjs/swagger';
import { SwaggerModule } from '@nestjs/swagger';
import type { Express } from 'express';
import { boundReaders } from './bound-readers';
import { createDocument } from './document';

/** Path of the readable documentation, whose pages the page's module serves. */
const docsPath = '/docs';
/** Path of the reference, a Swagger UI. */
export const referencePath = `${docsPath}/reference`;

/** Readers of the documentation at a time: each may be anybody, and holds a file open. */
export const maxReaders = 200;

/**
 * Serves `/openapi.json` and `/docs/reference`, which need no key.
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
  app.use(docsPath, boundReaders(maxReaders));
  SwaggerModule.setup(referencePath, app, built, {
    raw: false,
    customSiteTitle: 'Darkroom API',
    // Built with the page, so that it has the same colours and the same header.
    customCssUrl: './reference.css',
    customJs: './reference.js',
    swaggerOptions: { persistAuthorization: true, displayRequestDuration: true },
  });
  return built;
}
