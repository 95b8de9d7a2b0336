import { fitLora } from './lora-fit';
import type { LoraFormat } from './lora-keys';
import type { TextualInversion } from './textual-inversion';
import { fitTextualInversion } from './token-embedding';
import { readWeights } from './weights-file';

/** What an accepted file of weights is. */
export interface WeightsSummary {
  kind: 'lora' | 'textual_inversion';
  format: LoraFormat | TextualInversion['format'];
  /** Layers that a LoRA changes. */
  modules: number;
  /** The ranks that occur in it, ascending. */
  rank: number[];
  /** Embeddings of a textual inversion. */
  tokens?: number;
}

/**
 * Checks uploaded weights against the model that they are for: every tensor is read, every layer found, every shape compared.
 * @throws WeightsError if they are malformed, of another kind, or do not fit the model; OnnxModelError if the model is malformed.
 */
export async function inspectWeights(path: string, baseFolder: string): Promise<WeightsSummary> {
  const weights = await readWeights(path);
  if (weights.kind === 'textual_inversion') {
    const { format, count } = weights.embedding;
    await fitTextualInversion(weights.embedding, baseFolder);
    return { kind: weights.kind, format, modules: 0, rank: [], tokens: count };
  }
  const { format, modules } = weights.lora;
  fitLora(weights.lora, baseFolder);
  const ranks = new Set([...modules.values()].map(({ rank }) => rank));
  return { kind: weights.kind, format, modules: modules.size, rank: [...ranks].sort((a, b) => a - b) };
}
