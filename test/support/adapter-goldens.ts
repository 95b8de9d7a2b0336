import { join } from 'node:path';
import type { Pipeline, TextToImageRequest } from '@app/diffusion';
import { requestOf } from './families';

/** What scripts/goldens/transformer_adapters.py and transformer_dialects.py draw with LoRAs. */
export const adapterRequest = requestOf({
  ...{ prompt: 'a red circle above a blue square', negative_prompt: null },
  ...{ seed: 7, steps: 4, cfg: 1, width: 64, height: 64 },
});

/** Linear layers of transformers that see many tokens. */
export const layersOfBlocks = /^(?:\w*transformer_blocks|layers|\w+_refiner)\.\d+\.(?!adaLN)/;

/** Where a folder of diffusers has the weights of its transformer. */
export const transformerFile = join('transformer', 'diffusion_pytorch_model.safetensors');

export const latentsOf = async (pipeline: Pipeline, change: Partial<TextToImageRequest> = {}): Promise<Float32Array> =>
  (await pipeline.generate({ ...adapterRequest, ...change })).latents[0];

export const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);
