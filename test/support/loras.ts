import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readModelFolder } from '@app/diffusion';
import { encodeSafetensors, type TensorToWrite } from './safetensors';

/**
 * Writes LoRAs of a model, each with other changes to the attention of U-Net and text encoder, or of the transformer
 * and to its modulations.
 * @param ranks of each
 * @returns their files
 */
export async function writeLoras(model: string, folder: string, ranks: readonly number[]): Promise<string[]> {
  const { tensors } = await readModelFolder(model);
  const parts = tensors.has('transformer') ? ['transformer'] : ['unet', 'text_encoder'];
  const layers = parts.flatMap((part) =>
    [...tensors.get(part)!].flatMap(([name, { shape }]) => {
      const path = /^(.*\.(?:to_q|to_k|to_v|q_proj|v_proj|modulation_\w+\.linear|adaLN_modulation\.\d))\.weight$/.exec(
        name,
      )?.[1];
      return path === undefined ? [] : [{ path: `${part}.${path}`, out: shape[0], into: shape[1] }];
    }),
  );
  return Promise.all(
    ranks.map(async (rank, i) => {
      const values = (count: number): Float32Array => Float32Array.from({ length: count }, (_, at) => wave(at, i));
      const factors = layers.flatMap(({ path, out, into }): [string, TensorToWrite][] => [
        [`${path}.lora_A.weight`, { shape: [rank, into], values: values(rank * into) }],
        [`${path}.lora_B.weight`, { shape: [out, rank], values: values(out * rank) }],
      ]);
      const file = join(folder, `lora-${i}.safetensors`);
      await writeFile(file, encodeSafetensors(Object.fromEntries(factors)));
      return file;
    }),
  );
}

const wave = (at: number, i: number): number => Math.sin((i + 1) * (at + 1)) / 4;
