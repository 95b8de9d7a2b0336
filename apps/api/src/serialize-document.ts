import { loadConfig } from '@app/config';
import { JsonLogger } from '@app/observability';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { ApiModule } from './api.module';
import { createDocument } from './docs/document';

/** The document as committed. The app is only inspected: it opens no database and no port. */
export async function serializeDocument(): Promise<string> {
  const module = ApiModule.forRoot(loadConfig({}), new JsonLogger('api', 'silent'));
  const app = await NestFactory.create(module, new ExpressAdapter(), {
    preview: true,
    logger: false,
    abortOnError: false,
  });
  try {
    return `${JSON.stringify(createDocument(app), null, 2)}\n`;
  } finally {
    await app.close();
  }
}
