import { headsOfWidth, unetDefaults } from '../architectures/unet-2d-condition-model';
import { type Family, trainedNoise } from './family';

/**
 * Stable Diffusion 2.x: OpenCLIP's text encoder without its last layer, heads of 64 channels. Whether a checkpoint
 * predicts noise or velocity its weights do not tell: most predict velocity.
 */
export const stableDiffusion2: Family = {
  name: 'sd2',
  title: 'Stable Diffusion 2.x',
  textEncoders: [
    {
      part: 'text_encoder',
      tokenizer: 'tokenizer',
      config: { hiddenAct: 'gelu', eosTokenId: 2 },
      padToken: 'zero',
      skip: 0,
      skipOfCheckpoint: 1,
      isNormed: true,
      isPooled: false,
    },
  ],
  unet: (parts) => ({ ...unetDefaults, numAttentionHeads: headsOfWidth(64, parts.get('unet')!) }),
  scalingFactor: 0.18215,
  nativeSize: 768,
  scheduler: {
    _class_name: 'DDIMScheduler',
    ...trainedNoise,
    prediction_type: 'v_prediction',
    set_alpha_to_one: false,
  },
  hasTimeIds: false,
};
