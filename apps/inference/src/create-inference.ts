import { healthHostOf } from '@app/config';
import { assertMigrated } from '@app/database';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthServer } from './health/health-server';
import { InferenceModule, type InferenceOptions } from './inference.module';

/** Starts the worker: engines, queue, sweeper, health endpoint. Closing the context ends all of them. */
export async function createInference(options: InferenceOptions): Promise<INestApplicationContext> {
  const { config, databaseUrl, logger } = options;
  await assertMigrated(databaseUrl, (sentence) => logger.warn(sentence));
  const context = await NestFactory.createApplicationContext(InferenceModule.forRoot(options), {
    logger,
    abortOnError: false,
  });
  const port = await context.get(HealthServer).listen(config.inferenceHealthPort, healthHostOf(config));
  logger.log('inference is ready', { healthPort: port });
  return context;
}
