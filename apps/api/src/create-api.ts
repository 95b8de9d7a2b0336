import type { Config } from '@app/config';
import { JsonLogger } from '@app/logging';
import { queueConnection } from '@app/queue';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { ExpressAdapter } from '@nestjs/platform-express';
import { setDefaultBackendFactory } from 'bullmq';
import helmet from 'helmet';
import { ApiModule } from './api.module';
import { requestId } from './http/request-id';
import { databaseUrlOf } from './infrastructure/infrastructure.module';

/** Builds the api without listening yet. */
export async function createApi(config: Config): Promise<NestExpressApplication> {
  setDefaultBackendFactory(queueConnection(config, databaseUrlOf(config)).factory);
  const app = await NestFactory.create<NestExpressApplication>(ApiModule.forRoot(config), new ExpressAdapter(), {
    bodyParser: false,
    bufferLogs: true,
    abortOnError: false,
  });
  app.useLogger(app.get(JsonLogger));
  app.disable('x-powered-by');
  app.set('query parser', 'simple');
  app.use(requestId);
  app.use(helmet({ contentSecurityPolicy: { directives: { 'upgrade-insecure-requests': null } } }));
  app.enableShutdownHooks();
  return app;
}
