import { unetDefaults } from '../architectures/unet-2d-condition-model';
import { hasUnet, stableDiffusion, trainedNoise } from './stable-diffusion';

/** Stable Diffusion 1.x: one CLIP text encoder, eight heads in all levels. */
export const stableDiffusion1 = stableDiffusion({
  name: 'sd1',
  title: 'Stable Diffusion 1.x',
  textEncoders: [
    {
      part: 'text_encoder',
      tokenizer: 'tokenizer',
      config: { hiddenAct: 'quick_gelu', eosTokenId: 2 },
      padToken: 'end',
      skip: 0,
      skipOfCheckpoint: 0,
      isNormed: true,
      isPooled: false,
    },
  ],
  unet: () => unetDefaults,
  scalingFactor: 0.18215,
  nativeSize: 512,
  scheduler: {
    _class_name: 'PNDMScheduler',
    ...trainedNoise,
    prediction_type: 'epsilon',
    skip_prk_steps: true,
    set_alpha_to_one: false,
  },
  hasZerosForNoText: false,
  recognises: hasUnet,
});
