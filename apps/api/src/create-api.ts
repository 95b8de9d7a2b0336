import type { Config } from '@app/config';
import { databaseUrlOf } from '@app/config';
import { assertMigrated } from '@app/database';
import { JsonLogger } from '@app/observability';
import { endSignals } from '@app/process';
import { queueConnection } from '@app/queue';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { ExpressAdapter } from '@nestjs/platform-express';
import { setDefaultBackendFactory } from 'bullmq';
import { ApiModule } from './api.module';
import { serveDocs } from './docs/serve-docs';
import { boundConnections, lingeringClose } from './http/connections';
import { privateJson } from './http/private-json';
import { requestId } from './http/request-id';
import { securityHeaders } from './http/security-headers';
import { Drain } from './observability/drain';
import { HttpObserver } from './observability/http-observer';

/** Builds the api without listening yet. */
export async function createApi(config: Config): Promise<NestExpressApplication> {
  await assertMigrated(databaseUrlOf(config));
  setDefaultBackendFactory(queueConnection(config, databaseUrlOf(config)).factory);
  const app = await NestFactory.create<NestExpressApplication>(ApiModule.forRoot(config), new ExpressAdapter(), {
    bodyParser: false,
    bufferLogs: true,
    abortOnError: false,
  });
  app.useLogger(app.get(JsonLogger));
  app.disable('x-powered-by');
  app.set('query parser', 'simple');
  // No cache keeps what callers are told, so a hash of each answer would be work for nothing.
  app.disable('etag');
  const drain = app.get(Drain);
  const observer = app.get(HttpObserver);
  app.use(boundConnections(app.getHttpServer()).oneAtATime);
  app.use(drain.observe.bind(drain));
  app.use(lingeringClose);
  app.use(requestId);
  app.use(observer.observe.bind(observer));
  app.use(securityHeaders(config.publicUrl));
  app.use(privateJson);
  serveDocs(app, config.publicUrl);
  app.enableShutdownHooks(endSignals);
  return app;
}
