import type { DrawRequest } from '../../apps/inference/src/engine/engine-protocol';

/** 64 x 64 pixels with guidance, for tests of calls, turns and stops. */
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
