import { type DrawingTask, seedOf, sizeOf } from '@app/domain';
import type { DrawnModel } from '../engine/engine-protocol';
import type { PictureParameters } from '../pictures/image-encoder';
import { serviceVersion } from '../service-version';

/** What drew a picture. */
interface DrawnBy {
  scheduler: string;
  source: DrawnModel;
  /** What enlarged it, if anything did. */
  upscaler: string | null;
}

/** The parameters of the picture of a task that has this index. A flag that is off is left out. */
export function parametersOf(
  task: DrawingTask,
  index: number,
  { scheduler, source, upscaler }: DrawnBy,
): PictureParameters {
  return {
    prompt: task.prompt,
    negative_prompt: task.negativePrompt,
    ...(task.promptWeighting && { prompt_weighting: true }),
    seed: seedOf(task.seed, index),
    cfg: task.cfg,
    steps: task.steps,
    scheduler,
    ...sizeOf[task.aspectRatio],
    model: source.name,
    model_hash: source.hash,
    ...(source.weights && { weights_hash: source.weights.hash, weights_scale: source.weights.scale }),
    ...(task.highResolution && { high_resolution: true }),
    ...(upscaler && { upscaler }),
    version: serviceVersion,
  };
}
