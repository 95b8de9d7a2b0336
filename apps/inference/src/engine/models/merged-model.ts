import { mergeLora, mergeTextualInversion } from '@app/diffusion';
import type { DrawnModel } from '../engine-protocol';
import { cachedMerge, placeCachedCopy } from './merge-cache';

/**
 * The folder of a model with a Fine-Tune's weights merged in; the model's own if there are none.
 * @param cacheDir folder for merged models; best on the model's device, where files are linked and not copied
 * @param owner whose the merge is
 * @param signal ends the merge of a LoRA between two layers
 * @throws WeightsError, OnnxModelError or RangeError if they cannot be merged
 */
export async function mergedModel(
  { folder: baseFolder, hash: baseHash, weights }: Pick<DrawnModel, 'folder' | 'hash' | 'weights'>,
  cacheDir: string,
  { owner, signal }: { owner?: string; signal?: Pick<AbortSignal, 'throwIfAborted'> } = {},
): Promise<string> {
  if (!weights) return baseFolder;
  const { kind, file, hash: weightsHash, scale, token } = weights;
  const base = {
    baseFolder,
    placeCopy: (from: string, to: string) => placeCachedCopy(cacheDir, baseHash, from, to),
  };
  const [key, build] =
    kind === 'lora'
      ? [
          { kind, baseHash, weightsHash, variant: String(scale) },
          (folder: string) => mergeLora({ ...base, lora: file, scale, folder, signal }),
        ]
      : [
          { kind: 'embedding' as const, baseHash, weightsHash, variant: token.toLowerCase() },
          (folder: string) => mergeTextualInversion({ ...base, embedding: file, token, folder }),
        ];
  return cachedMerge(cacheDir, key, build, owner);
}
