import { assertFinite } from '../lora/lora';
import { fitLora } from '../lora/lora-fit';
import type { LoraFormat } from '../lora/lora-keys';
import { assertFiniteVectors } from '../textual-inversion/textual-inversion';
import type { TextualInversion } from '../textual-inversion/textual-inversion';
import { fitTextualInversion } from '../textual-inversion/token-embedding';
import { withWeights } from './weights-file';

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
 * Checks uploaded weights against the model that they are for: first what the header says, every layer found and every shape
 * compared; only of what fits, the numbers are read, once and in pieces.
 * @throws WeightsError if they are malformed, of another kind, or do not fit the model; OnnxModelError if the model is malformed.
 */
export function inspectWeights(path: string, baseFolder: string): Promise<WeightsSummary> {
  return withWeights(path, async (weights, source) => {
    if (weights.kind === 'textual_inversion') {
      const { format, count } = weights.embedding;
      await fitTextualInversion(weights.embedding, baseFolder);
      assertFiniteVectors(weights.embedding, source);
      return { kind: weights.kind, format, modules: 0, rank: [], tokens: count };
    }
    const { format, modules } = weights.lora;
    fitLora(weights.lora, baseFolder);
    assertFinite(weights.lora, source);
    const ranks = new Set([...modules.values()].map(({ rank }) => rank));
    return { kind: weights.kind, format, modules: modules.size, rank: [...ranks].sort((a, b) => a - b) };
  });
}
