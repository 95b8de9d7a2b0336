import type { SchedulerName } from '../schedulers';
import type { RgbImage } from '../tensor/planes';
import type { AdapterUse } from './applied-adapters';
import type { ModelFacts } from './model-facts';
import type { Trajectory } from './trajectory';
import { RequestError } from '../errors';

/** One prompt to be drawn once per seed. */
export interface TextToImageRequest {
  prompt: string;
  /** What the picture should not be; without one it is the empty text, or zeros for XL. */
  negativePrompt?: string | null;
  /** Pixels; multiples of the model's `vaeScaleFactor`. */
  width: number;
  height: number;
  numInferenceSteps: number;
  /** Weight of the prompt against the negative prompt; 1 or less draws without guidance. */
  guidanceScale: number;
  /** One picture each; its noise comes from a generator of its own. */
  seeds: readonly number[];
  /** The model's own if not given. */
  scheduler?: SchedulerName;
  /** Whether `(word:1.3)` and its kin are read as attention; plain text by default. */
  promptWeighting?: boolean;
  /** Fine-Tunes of the model. */
  adapters?: readonly AdapterUse[];
}

export interface GenerateHooks {
  /** After every step: how many calls of the U-Net are done, of how many. */
  onStep?(step: number, total: number, trajectories: readonly Trajectory[]): void;
  /** Read before every step. */
  signal?: { readonly aborted: boolean };
}

export interface GeneratedImages {
  images: RgbImage[];
  /** Final latents of each image, before the VAE's scaling. */
  latents: Float32Array[];
  /** Rows that the prompt took; more than 1 says that it was longer than the model's text window. */
  promptChunks: number;
}

/** @throws RequestError naming the value and what is accepted */
export function checkRequest(
  request: TextToImageRequest,
  { vaeScaleFactor }: Pick<ModelFacts, 'vaeScaleFactor'>,
): void {
  const { width, height, numInferenceSteps, guidanceScale, seeds } = request;
  for (const [name, size] of Object.entries({ width, height }))
    if (!Number.isInteger(size) || size <= 0 || size % vaeScaleFactor !== 0)
      throw new RequestError(`The ${name} is ${size}; this model draws multiples of ${vaeScaleFactor} pixels.`);
  if (!Number.isInteger(numInferenceSteps) || numInferenceSteps < 1)
    throw new RequestError(`The number of steps is ${numInferenceSteps}; at least 1 is needed.`);
  if (!Number.isFinite(guidanceScale))
    throw new RequestError(`The guidance scale is ${guidanceScale}; a number is needed.`);
  if (seeds.length === 0) throw new RequestError('There are no seeds; one is needed for each image.');
}
