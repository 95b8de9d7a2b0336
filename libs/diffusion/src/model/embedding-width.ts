import { join } from 'node:path';
import { cures } from './cures';
import { ModelFolderError } from './errors';
import type { JsonObject } from './json-file';
import type { ModelFolder } from './model-folder';

/**
 * Width of the embeddings that the text encoder gives and the U-Net takes, as far as their graphs and configurations
 * tell it.
 * @throws ModelFolderError if two of them differ
 */
export function embeddingWidth({
  path,
  textEncoder,
  unet,
  configs,
}: Pick<ModelFolder, 'path' | 'textEncoder' | 'unet' | 'configs'>): number | undefined {
  const widthOf = (part: string, key: string, config: JsonObject, ofGraph: number | undefined): number | undefined => {
    // diffusers may list a width for each block; those of Stable Diffusion 1.x and 2.x are one number.
    const ofConfig = typeof config[key] === 'number' ? config[key] : undefined;
    if (ofGraph !== undefined && ofConfig !== undefined && ofGraph !== ofConfig)
      throw new ModelFolderError(
        join(path, part, 'config.json'),
        `has a ${key} of ${ofConfig}, and the embeddings of the graph beside it are ${ofGraph} wide`,
        cures.oneExport,
      );
    return ofGraph ?? ofConfig;
  };
  const given = widthOf('text_encoder', 'hidden_size', configs.textEncoder, textEncoder.embeddingWidth);
  const taken = widthOf('unet', 'cross_attention_dim', configs.unet, unet.embeddingWidth);
  if (given !== undefined && taken !== undefined && given !== taken)
    throw new ModelFolderError(
      textEncoder.path,
      `gives embeddings ${given} wide, and the U-Net takes ${taken}`,
      cures.oneExport,
    );
  return taken ?? given;
}
