import { type DrawingTask, seedOf } from '@app/domain';
import type { PictureParameters } from '../pictures/image-encoder';
import type { ResolvedModel } from './model-resolver';
import { serviceVersion } from '../service-version';

/** What drew a picture. */
interface DrawnBy extends Pick<ResolvedModel, 'source' | 'adapters' | 'clipSkip'> {
  scheduler: string;
  /** What enlarged it, if anything did. */
  upscaler: string | null;
}

/** The parameters of the picture of a task that has this index. A flag that is off is left out. */
export function parametersOf(
  task: DrawingTask,
  index: number,
  { scheduler, source, adapters, clipSkip, upscaler }: DrawnBy,
): PictureParameters {
  const [weights] = task.inputs?.finetunes ? [] : adapters;
  const { finetunes } = task.inputs ?? {};
  return {
    prompt: task.prompt,
    negative_prompt: task.negativePrompt,
    ...(task.promptWeighting && { prompt_weighting: true }),
    seed: seedOf(task.seed, index),
    cfg: task.cfg,
    steps: task.steps,
    scheduler,
    width: task.width,
    height: task.height,
    model: source.name,
    model_hash: source.hash,
    ...(weights && { weights_hash: weights.hash, weights_scale: weights.scale }),
    ...(finetunes && {
      finetunes: finetunes.map(({ id, scale }, i) => ({ id, weights_hash: adapters[i]?.hash, weights_scale: scale })),
    }),
    ...(clipSkip !== undefined && clipSkip > 1 && { clip_skip: clipSkip }),
    ...(task.highResolution && { high_resolution: true }),
    ...(upscaler && { upscaler }),
    version: serviceVersion,
  };
}
