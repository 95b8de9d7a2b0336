import { mergeLora, mergeTextualInversion } from '@app/diffusion';
import type { DrawnModel } from './engine-protocol';
import { cachedMerge, placeCachedCopy } from './merge-cache';

/**
 * The folder of a model with a Fine-Tune's weights merged in; the model's own if there are none.
 * @param cacheDir folder for merged models; best on the model's device, where files are linked and not copied
 * @param signal ends the merge of a LoRA between two layers
 * @throws WeightsError, OnnxModelError or RangeError if they cannot be merged
 */
export async function mergedModel(
  { folder: baseFolder, hash: baseHash, weights }: Pick<DrawnModel, 'folder' | 'hash' | 'weights'>,
  cacheDir: string,
  signal?: Pick<AbortSignal, 'throwIfAborted'>,
): Promise<string> {
  if (!weights) return baseFolder;
  const { kind, file, hash: weightsHash, scale, token } = weights;
  const base = {
    baseFolder,
    placeCopy: (from: string, to: string) => placeCachedCopy(cacheDir, baseHash, from, to),
  };
  return kind === 'lora'
    ? cachedMerge(cacheDir, { kind: 'lora', baseHash, weightsHash, variant: String(scale) }, (folder) =>
        mergeLora({ ...base, lora: file, scale, folder, signal }),
      )
    : cachedMerge(cacheDir, { kind: 'embedding', baseHash, weightsHash, variant: token.toLowerCase() }, (folder) =>
        mergeTextualInversion({ ...base, embedding: file, token, folder }),
      );
}
