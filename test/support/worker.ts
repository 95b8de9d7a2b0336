import type { INestApplicationContext } from '@nestjs/common';
import { createInference } from '../../apps/inference/src/create-inference';
import type { InferenceOptions } from '../../apps/inference/src/inference.module';
import { type InferenceBench, threadFile } from './inference';

/** Starts a worker on a bench, which ends it at the latest. */
export async function startWorker(
  bench: InferenceBench,
  options: Partial<InferenceOptions> = {},
): Promise<INestApplicationContext> {
  const worker = await createInference({ ...bench, threadFile, ...options });
  const close = worker.close.bind(worker);
  let closing: Promise<void> | undefined;
  worker.close = () => (closing ??= close());
  bench.workers.push(worker);
  return worker;
}
