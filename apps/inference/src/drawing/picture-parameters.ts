import type { DrawingTask } from '@app/domain';
import { serviceVersion } from '@app/process';
import { type ModelSource, seedOf } from '../engine/engine-protocol';
import type { PictureParameters } from '../pictures/image-encoder';
import type { ResolvedModel } from './model-resolver';
import type { ReadPictures } from './source-pictures';

interface DrawnBy extends Pick<ResolvedModel, 'source' | 'adapters' | 'clipSkip' | 'controls' | 'precision'> {
  pictures?: ReadPictures;
  scheduler: string;
  upscaler: string | null;
}

/** The parameters of the picture of a task that has this index. A flag that is off is left out. */
export function parametersOf(
  task: DrawingTask,
  index: number,
  { scheduler, source, adapters, controls = [], pictures, clipSkip, precision, upscaler }: DrawnBy,
): PictureParameters {
  const { finetunes } = task.inputs ?? {};
  const [weights] = finetunes ? [] : adapters;
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
    ...(precision === 'int8' && { precision }),
    ...(weights && { weights_hash: weights.hash, weights_scale: weights.scale }),
    ...(finetunes && {
      finetunes: finetunes.map(({ id, scale }, i) => ({ id, weights_hash: adapters[i]?.hash, weights_scale: scale })),
    }),
    ...(pictures?.image && { image_sha256: pictures.image.sha256, strength: task.inputs?.strength }),
    ...(pictures?.around && { outpaint: { x: pictures.around.x, y: pictures.around.y } }),
    ...(pictures?.mask && { mask_sha256: pictures.mask.sha256 }),
    ...(controls.length > 0 && { control: controls.map((model, i) => followed(task, i, model, pictures)) }),
    ...(pictures &&
      pictures.references.length > 0 && { references_sha256: pictures.references.map(({ sha256 }) => sha256) }),
    ...(clipSkip !== undefined && clipSkip > 1 && { clip_skip: clipSkip }),
    ...(task.highResolution && { high_resolution: true }),
    ...(upscaler && { upscaler }),
    version: serviceVersion,
  };
}

function followed({ inputs }: DrawingTask, index: number, model: ModelSource, pictures: ReadPictures | undefined) {
  const { scale, start, end, preprocess } = inputs!.control![index];
  return {
    image_sha256: pictures?.control[index]?.sha256,
    model: model.name,
    model_hash: model.hash,
    ...{ scale, start, end },
    ...(preprocess && { preprocess }),
  };
}
