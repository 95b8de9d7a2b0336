import type { NestExpressApplication } from '@nestjs/platform-express';
import { SwaggerModule } from '@nestjs/swagger';
import type { Express } from 'express';
import { createDocument } from './document';

/** Where the readable form of the document lies. */
export const docsPath = '/docs';

/** Serves `/openapi.json` and `/docs`, which need no key. The document is built, and written as text, when it is first asked for. */
export function serveDocs(app: NestExpressApplication, publicUrl: string): void {
  let text: Buffer | undefined;
  const express: Express = app.getHttpAdapter().getInstance();
  express.get('/openapi.json', (_request, response) => {
    text ??= Buffer.from(JSON.stringify(createDocument(app, publicUrl)));
    response.type('application/json').send(text);
  });
  SwaggerModule.setup(docsPath, app, () => createDocument(app, publicUrl), {
    raw: ['json'],
    jsonDocumentUrl: 'openapi.json',
    customSiteTitle: 'Darkroom API',
    swaggerOptions: { persistAuthorization: true, displayRequestDuration: true },
  });
}
