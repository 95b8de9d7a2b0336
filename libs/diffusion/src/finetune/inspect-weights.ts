import { assertFinite } from '../lora/lora';
import { fitLora } from '../lora/lora-fit';
import type { LoraFormat } from '../lora/lora-keys';
import { assertFiniteVectors } from '../textual-inversion/textual-inversion';
import type { TextualInversion } from '../textual-inversion/textual-inversion';
import { fitTextualInversion } from '../textual-inversion/token-embedding';
import { withWeights } from './weights-file';

/** Properties of an accepted file of weights. */
export interface WeightsSummary {
  kind: 'lora' | 'textual_inversion';
  format: LoraFormat | TextualInversion['format'];
  /** Number of layers that a LoRA changes. */
  modules: number;
  /** Its distinct ranks, ascending. */
  rank: number[];
  /** Number of embeddings of a textual inversion. */
  tokens?: number;
}

/**
 * Checks uploaded weights against their base model: first the header alone, with every layer and every shape; only if
 * that fits are the numbers read, once and in pieces.
 * @throws WeightsError if they are malformed, of another kind, or do not fit the model; OnnxModelError if
 * the model is malformed.
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
