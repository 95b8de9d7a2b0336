import { assertMigrated } from '@app/database';
import { queueConnection } from '@app/queue';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { setDefaultBackendFactory } from 'bullmq';
import { HealthServer } from './health/health-server';
import { InferenceModule } from './inference.module';
import type { InferenceOptions } from './inference.providers';

/** Starts the worker: engines, queue, sweeper, health endpoint. Closing the context ends all of them. */
export async function createInference(options: InferenceOptions): Promise<INestApplicationContext> {
  const { config, databaseUrl, logger } = options;
  await assertMigrated(databaseUrl);
  setDefaultBackendFactory(queueConnection(config, databaseUrl).factory);
  const context = await NestFactory.createApplicationContext(InferenceModule.forRoot(options), {
    logger,
    abortOnError: false,
  });
  // A health check on this machine uses the loopback address; others may connect only if the service
  // listens on every address.
  const host = ['0.0.0.0', '::'].includes(config.host) ? config.host : '127.0.0.1';
  const port = await context.get(HealthServer).listen(config.inferenceHealthPort, host);
  logger.log('inference is ready', { healthPort: port });
  return context;
}
