import type { NestExpressApplication } from '@nestjs/platform-express';
import { SwaggerModule } from '@nestjs/swagger';
import { createDocument } from './document';

/** Where the readable form of the document lies. */
export const docsPath = '/docs';

/** Serves `/openapi.json` and `/docs`, which need no key. The document is built when it is first asked for. */
export function serveDocs(app: NestExpressApplication, publicUrl: string): void {
  SwaggerModule.setup(docsPath, app, () => createDocument(app, publicUrl), {
    raw: ['json'],
    jsonDocumentUrl: 'openapi.json',
    customSiteTitle: 'Darkroom API',
    swaggerOptions: { persistAuthorization: true, displayRequestDuration: true },
  });
}
