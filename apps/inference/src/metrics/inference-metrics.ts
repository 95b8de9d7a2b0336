import { Metrics, stepBuckets } from '@app/observability';
import { Injectable } from '@nestjs/common';
import type { EngineStep, ModelLoaded } from '../engine/engine-protocol';

const endings = ['succeeded', 'failed', 'canceled', 'given_back'] as const;
/** How the work on a claimed task ended. */
export type Ending = (typeof endings)[number];

/** A worker's metrics of its drawing. */
@Injectable()
export class InferenceMetrics {
  private readonly steps;
  private readonly batches;
  private readonly loads;
  private readonly loadSeconds;
  private readonly drawings;
  private readonly computeSeconds;

  constructor(metrics: Metrics) {
    this.steps = metrics.histogram('step_seconds', {
      help: 'Time of one call of what predicts, which moves several pictures on by a step.',
      buckets: stepBuckets,
    });
    this.batches = metrics.histogram('batch_pictures', {
      help: 'Pictures that one call of what predicts moves on, whichever requests they belong to.',
      buckets: [1, 2, 3, 4, 6, 8, 12, 16],
    });
    this.loads = metrics.counter('model_loads_total', {
      help: 'Models loaded into a device.',
      labels: ['model', 'device'],
    });
    this.loadSeconds = metrics.counter('model_load_seconds_total', {
      help: 'Time spent on loading models.',
      labels: ['model', 'device'],
    });
    this.drawings = metrics.counter('drawings_total', {
      help: 'Drawings that this process ended. failed: also those that are tried again; canceled: also deleted or taken over; given_back: the process ended, the storage took no files, nothing could be signed, or the moderation not asked.',
      labels: ['outcome'],
    });
    // A counter that first appears with a failure shows no rise: so all are there from the start, at 0.
    for (const outcome of endings) this.drawings.inc({ outcome }, 0);
    this.computeSeconds = metrics.counter('compute_seconds_total', { help: 'Time of drawings that succeeded.' });
  }

  stepDone({ pictures, stepMs }: Pick<EngineStep, 'pictures' | 'stepMs'>): void {
    this.steps.observe(stepMs / 1000);
    this.batches.observe(pictures);
  }

  modelLoaded({ key: model, loadMs }: Pick<ModelLoaded, 'key' | 'loadMs'>, device: string): void {
    this.loads.inc({ model, device });
    this.loadSeconds.inc({ model, device }, loadMs / 1000);
  }

  /** @param computeSeconds of one that has succeeded; 0 of others */
  drawingEnded(outcome: Ending, computeSeconds: number): void {
    this.drawings.inc({ outcome });
    this.computeSeconds.inc(computeSeconds);
  }
}
