import { type Config, databaseUrlOf } from '@app/config';
import { assertMigrated } from '@app/database';
import { JsonLogger } from '@app/observability';
import { endSignals } from '@app/process';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { ApiModule } from './api.module';
import { serveDocs } from './docs/serve-docs';
import { BoundedAdapter } from './defence/bounded-server';
import { allowCrossOrigin, responseHeaders } from './http/response-headers';
import { Drain } from './http/drain';
import { HttpObserver } from './admin/http-observer.middleware';

/** Builds the api without listening yet. */
export async function createApi(config: Config): Promise<NestExpressApplication> {
  const logger = new JsonLogger('api', config.logLevel);
  await assertMigrated(databaseUrlOf(config), (sentence) => logger.warn(sentence));
  const adapter = new BoundedAdapter(config.publicUrl);
  const app = await NestFactory.create<NestExpressApplication>(ApiModule.forRoot(config, logger), adapter, {
    bodyParser: false,
    logger,
    abortOnError: false,
  });
  app.disable('x-powered-by');
  app.set('query parser', 'simple');
  // No cache stores these responses: hashing them would be wasted work.
  app.disable('etag');
  const observer = app.get(HttpObserver);
  app.get(Drain).of(adapter.connections);
  app.use(observer.observe.bind(observer));
  app.use(responseHeaders(config.publicUrl));
  allowCrossOrigin(app, config.corsOrigins);
  serveDocs(app, config.publicUrl);
  app.enableShutdownHooks(endSignals);
  return app;
}
