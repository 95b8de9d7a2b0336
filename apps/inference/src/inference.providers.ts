import type { Config } from '@app/config';
import { ModelStore } from '@app/model-store';
import type { JsonLogger } from '@app/observability';
import type { FactoryProvider } from '@nestjs/common';
import { BrokenModels } from './drawing/broken-models';
import { StopListener } from './drawing/stop-listener';
import { WorkerModels } from './drawing/worker-models';
import { Engines } from './engine-client/engines';
import { InferenceMetrics } from './metrics/inference-metrics';

/** The inputs of the worker. */
export interface InferenceOptions {
  config: Config;
  databaseUrl: string;
  logger: JsonLogger;
  /** Compiled entry of the engine threads; tests name the one in `dist`. */
  threadFile?: string;
  /** Time for a drawing to finish after the process was asked to end; then it is given back. */
  shutdownDeadlineMs?: number;
  /** Called when an engine hangs: the process must end, because nothing else ends its thread. */
  onStall?: () => void;
  /** This machine's clock, in milliseconds since the epoch. */
  now?: () => number;
}

/** The engines, each loaded and alive. */
export function engines({ config, logger, threadFile, onStall }: InferenceOptions): FactoryProvider<Engines> {
  return {
    provide: Engines,
    inject: [InferenceMetrics],
    useFactory: (metrics: InferenceMetrics) =>
      Engines.start(config, logger, {
        ...(threadFile && { threadFile }),
        ...(onStall && { onStall }),
        onLoaded: (loaded, device) => metrics.modelLoaded(loaded, device),
        onStep: (step) => metrics.stepDone(step),
      }),
  };
}

/**
 * The models that the worker can draw. The first listing reads every graph, so it happens now and not
 * while pictures are drawn.
 */
export function workerModels({ config, logger }: InferenceOptions): FactoryProvider<WorkerModels> {
  return {
    provide: WorkerModels,
    inject: [ModelStore, BrokenModels],
    useFactory: async (store: ModelStore, broken: BrokenModels) => {
      const models = new WorkerModels(store, config, logger, broken);
      await models.start();
      return models;
    },
  };
}

/** Hears which tasks must stop. */
export function stopListener({ databaseUrl, logger }: InferenceOptions): FactoryProvider<StopListener> {
  return {
    provide: StopListener,
    useFactory: async () => {
      const stops = new StopListener(databaseUrl, logger);
      await stops.start();
      return stops;
    },
  };
}
