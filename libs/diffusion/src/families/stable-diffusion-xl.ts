import { headsOfWidth, unetDefaults } from '../architectures/unet-2d-condition-model';
import type { PartTensors } from '../weights/original-names';
import { stableDiffusion, trainedNoise } from './stable-diffusion';

/**
 * Stable Diffusion XL: two text encoders, of which each gives the states before its last layer and the second one the
 * pooled text; the U-Net is told the picture's size.
 */
export const stableDiffusionXl = stableDiffusion({
  name: 'sdxl',
  title: 'Stable Diffusion XL',
  textEncoders: [
    {
      part: 'text_encoder',
      tokenizer: 'tokenizer',
      config: { hiddenAct: 'quick_gelu', eosTokenId: 2 },
      padToken: 'end',
      skip: 1,
      skipOfCheckpoint: 1,
      isNormed: false,
      isPooled: false,
    },
    {
      part: 'text_encoder_2',
      tokenizer: 'tokenizer_2',
      config: { hiddenAct: 'gelu', eosTokenId: 2 },
      padToken: 'zero',
      skip: 1,
      skipOfCheckpoint: 1,
      isNormed: false,
      isPooled: true,
    },
  ],
  unet: (parts) => ({
    ...unetDefaults,
    numAttentionHeads: headsOfWidth(64, parts.get('unet')!),
    additionTimeEmbedDim: timeWidth(parts),
  }),
  scalingFactor: 0.13025,
  nativeSize: 1024,
  scheduler: {
    _class_name: 'EulerDiscreteScheduler',
    ...trainedNoise,
    prediction_type: 'epsilon',
    timestep_spacing: 'leading',
    interpolation_type: 'linear',
    use_karras_sigmas: false,
  },
  hasZerosForNoText: true,
  recognises: ({ tensors }) => tensors.get('unet')?.has('add_embedding.linear_1.weight') === true,
});

/** Width of the embedding of each of the six numbers that are told beside the pooled text. */
function timeWidth(parts: PartTensors): number {
  const width = parts.get('unet')!.get('add_embedding.linear_1.weight')?.shape[1];
  const pooled = parts.get('text_encoder_2')?.get('text_projection.weight')?.shape[0];
  return width && pooled ? (width - pooled) / 6 : unetDefaults.additionTimeEmbedDim;
}
