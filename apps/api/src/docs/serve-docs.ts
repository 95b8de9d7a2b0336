import type { NestExpressApplication } from '@nestjs/platform-express';
import type { OpenAPIObject } from '@nestjs/swagger';
import { SwaggerModule } from '@nestjs/swagger';
import type { Express } from 'express';
import { createDocument } from './document';

/** Path of the readable documentation. */
export const docsPath = '/docs';

/** Serves `/openapi.json` and `/docs`, which need no key. The document is built at the first request. */
export function serveDocs(app: NestExpressApplication, publicUrl: string): void {
  let document: OpenAPIObject | undefined;
  let text: Buffer | undefined;
  const built = (): OpenAPIObject => (document ??= createDocument(app, publicUrl));
  const express: Express = app.getHttpAdapter().getInstance();
  express.get('/openapi.json', (_request, response) => {
    text ??= Buffer.from(JSON.stringify(built()));
    response.type('application/json').send(text);
  });
  SwaggerModule.setup(docsPath, app, built, {
    raw: false,
    customSiteTitle: 'Darkroom API',
    swaggerOptions: { persistAuthorization: true, displayRequestDuration: true },
  });
}
