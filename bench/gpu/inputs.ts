import type { ModelFolder, Tensors } from '@app/diffusion';
import { noAdapters } from '../../libs/diffusion/src/adapters/row-adapters';
import { type Denoiser, type DenoiserRow, lengthOf } from '../../libs/diffusion/src/denoisers/denoiser';
import { bool, float32 } from '../../libs/diffusion/src/sessions/tensor';
import type { LatentShape } from '../../libs/diffusion/src/tensor/planes';
import { countOf } from '../../libs/diffusion/src/weights/named-tensor';
import { randomFrom } from '../section';

/** Tokens of a text: CLIP's chunk, all that klein reads with its padding, a sentence for Z-Image. */
export const textTokens = { sd15: 77, sdxl: 77, klein: 512, 'z-image': 64 } as const;

/** Rows of a call with random values, each with its own latents and text. */
export function someRows(
  { autoencoder }: Pick<ModelFolder, 'autoencoder'>,
  { inputs }: Pick<Denoiser, 'inputs'>,
  { tokens, pixels, count }: { tokens: number; pixels: number; count: number },
): { rows: DenoiserRow[]; shape: LatentShape } {
  const random = randomFrom(pixels);
  const values = (...sizes: number[]): Float32Array =>
    Float32Array.from({ length: countOf(sizes) }, () => 2 * (random() + random() + random() - 1.5));
  const edge = pixels / autoencoder.scaleFactor;
  const shape: LatentShape = [lengthOf(inputs, 'sample', 1)!, edge, edge];
  const conditioning = (): Tensors => {
    const width = lengthOf(inputs, 'encoder_hidden_states', 2)!;
    const pooled = lengthOf(inputs, 'text_embeds', 1);
    const hasPadding = lengthOf(inputs, 'is_padding', 1) !== undefined;
    return {
      encoder_hidden_states: float32(values(tokens, width), [tokens, width]),
      ...(pooled !== undefined && { text_embeds: float32(values(pooled)) }),
      ...(hasPadding && { is_padding: bool(new Uint8Array(tokens), [tokens, 1]) }),
    };
  };
  const row = (): DenoiserRow => ({
    ...{ sample: values(...shape), conditioning: conditioning(), timestep: 500, guidanceScale: 1 },
    adapters: noAdapters,
  });
  return { rows: Array.from({ length: count }, row), shape };
}
