import { randomInt } from 'node:crypto';
import { defaults, type Drawing, type DrawingInputs, limits } from '@app/domain';
import type { CreateGenerationDto } from '@app/domain/http';
import { type InstalledModel, PictureSizes } from '@app/model-store';
import type { Shape } from './asked-shape';

/** How a body of any kind asks for its pictures. */
export type DrawnBody = Pick<
  CreateGenerationDto,
  | 'negative_prompt'
  | 'cfg'
  | 'steps'
  | 'seed'
  | 'num_generations'
  | 'scheduler'
  | 'high_resolution'
  | 'output_format'
  | 'prompt_weighting'
>;

/** What a drawing is made from, checked; without a shape it is square. */
export interface CheckedInputs {
  inputs: DrawingInputs;
  shape?: Shape | undefined;
}

/** The model that a body asks for, and the one that will draw. */
interface DrawnBy {
  model: string;
  served: InstalledModel;
}

/** How a task is drawn, with every default resolved and the seed chosen. */
export function resolvedOrder(body: DrawnBody, { inputs, shape }: CheckedInputs, { model, served }: DrawnBy) {
  const { defaults: modelDefaults } = served;
  const { aspectRatio } = defaults;
  return {
    negativePrompt: body.negative_prompt ?? null,
    cfg: body.cfg ?? modelDefaults.cfg ?? defaults.cfg,
    steps: body.steps ?? modelDefaults.steps ?? defaults.steps,
    seed: body.seed ?? randomInt(0, limits.seed + 1),
    numImages: body.num_generations ?? defaults.numGenerations,
    scheduler: body.scheduler ?? modelDefaults.scheduler ?? null,
    ...(shape ?? { aspectRatio, ...new PictureSizes(model, served).ofRatio(aspectRatio) }),
    highResolution: body.high_resolution ?? defaults.highResolution,
    outputFormat: body.output_format ?? defaults.outputFormat,
    promptWeighting: body.prompt_weighting ?? defaults.promptWeighting,
    inputs: Object.keys(inputs).length > 0 ? inputs : null,
  } satisfies Partial<Drawing>;
}
