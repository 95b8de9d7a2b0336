import { headsOfWidth, unetDefaults } from '../architectures/unet-2d-condition-model';
import { hasUnet, stableDiffusion, trainedNoise } from './stable-diffusion';

/**
 * Stable Diffusion 2.x: OpenCLIP's text encoder without its last layer, heads of 64 channels. Whether a checkpoint
 * predicts noise or velocity its weights do not tell: most predict velocity.
 */
export const stableDiffusion2 = stableDiffusion({
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
  hasZerosForNoText: false,
  recognises({ tensors, marks, configs }) {
    const table = tensors.get('text_encoder')?.get('text_model.embeddings.token_embedding.weight');
    const isOpenClip = marks.has('openclip') || configs.get('text_encoder')?.hidden_act === 'gelu';
    return hasUnet({ tensors }) && (isOpenClip || (table?.shape[1] ?? 0) >= 1024);
  },
});
