import type { DrawRequest } from '../../apps/inference/src/engine/engine-protocol';

/**
 * A picture of 64 x 64 pixels, with guidance: the tests of the engine look at calls, turns and stops more than at what
 * it shows.
 */
export const smallRequest: DrawRequest = {
  prompt: 'a red circle',
  negativePrompt: 'green',
  guidanceScale: 7.5,
  numInferenceSteps: 20,
  seed: 1,
  numImages: 1,
  scheduler: 'euler',
  width: 64,
  height: 64,
  promptWeighting: false,
};
