import { readModelWeights } from './model-parts';
import type { AdapterKind } from '../adapters/adapter';
import { assertFinite, withAdapter } from '../adapters/adapter-file';
import { fitAdapter } from '../adapters/fit-adapter';

/** Properties of an accepted file of weights. */
export interface WeightsSummary {
  kind: AdapterKind;
  /** Number of embeddings of a textual inversion. */
  tokens?: number;
  /** Tensors that met no layer of the model. */
  unmatched: number;
  /** A sentence for whoever uploaded it, where something was assumed. */
  note?: string;
}

/**
 * Checks uploaded weights against their base model: first the header alone, with every layer and every shape; only if
 * that fits are the numbers read, once and in pieces.
 * @throws WeightsError if they are malformed, of another kind, or do not fit the model; ModelFolderError if the model
 * cannot be read
 */
export function inspectWeights(file: string, modelFolder: string): Promise<WeightsSummary> {
  return withAdapter(file, async (adapter, source) => {
    const { kind, words, unmatched, note } = fitAdapter(adapter, (await readModelWeights(modelFolder)).tensors);
    assertFinite(adapter, source);
    return { kind, unmatched, ...(kind === 'textual_inversion' && { tokens: words[0].count }), ...(note && { note }) };
  });
}
