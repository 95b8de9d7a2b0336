import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { shapeText, WeightsError } from '../finetune/weights-error';
import { findPlainGraph } from '../model/plain-graph';
import { OnnxModel } from '../onnx/onnx-model';
import { traceWeights } from '../onnx/weight-origin';
import type { WeightOrigin } from '../onnx/weight-origin';
import type { TextualInversion } from './textual-inversion';

/** The text encoder of a base model, and its table of token embeddings [tokens, width]. */
export interface TokenEmbedding {
  model: OnnxModel;
  table: WeightOrigin;
}

/** CLIP's text window, for folders that do not specify it. */
const DEFAULT_POSITIONS = 77;

/**
 * Finds the table that embeddings are added to.
 * @throws WeightsError if the base's embeddings have another width, or its text window is too short.
 */
export async function fitTextualInversion(embedding: TextualInversion, baseFolder: string): Promise<TokenEmbedding> {
  const { count, width } = embedding;
  const path = findPlainGraph(join(baseFolder, 'text_encoder'));
  const model = path === undefined ? undefined : OnnxModel.open(path);
  const table = model && findTable(model);
  if (!table) throw misfit('The base model has no table of token embeddings to add to.');
  const { dims } = table.initializer;
  if (dims[1] !== width) {
    throw misfit(
      `The embedding has the shape ${shapeText([count, width])}; the base model's token embeddings are ${shapeText(dims)}.`,
    );
  }
  // Begin and end of the text take one position each.
  const room = (await readPositions(baseFolder)) - 2;
  if (count > room)
    throw misfit(`The embedding has ${count} vectors; the base model's text window has room for ${room}.`);
  return { model, table };
}

/** The table of token embeddings of a text encoder: the largest of its look-up tables. */
export function findTable(model: OnnxModel): WeightOrigin | undefined {
  const trace = traceWeights(model);
  const tables = model.nodes
    .filter(({ opType }) => opType === 'Gather')
    .map((node) => trace(node.inputs[0]))
    .filter((origin) => origin?.initializer.dims.length === 2 && origin.transposes === 0);
  return tables.sort((a, b) => b!.initializer.dims[0] - a!.initializer.dims[0])[0];
}

async function readPositions(baseFolder: string): Promise<number> {
  const text = await readFile(join(baseFolder, 'text_encoder', 'config.json'), 'utf8').catch(() => '{}');
  const { max_position_embeddings: positions } = JSON.parse(text) as { max_position_embeddings?: number };
  return positions ?? DEFAULT_POSITIONS;
}

function misfit(sentence: string): WeightsError {
  return new WeightsError('WeightsDoNotFitModel', sentence);
}
