import { malformed, misfit, quote, shapeText } from '../finetune/weights-error';
import { isFiniteTensor } from '../safetensors/safetensors';
import type { SafetensorsInfo } from '../safetensors/safetensors-header';
import type { ByteSource } from '../tensor/byte-source';
import { join } from 'node:path';
import { findPlainGraph } from '../model/graph-file';
import { readJsonFile } from '../model/model-files';
import { positive } from '../model/parts-fit';
import { OnnxModel, traceWeights, type WeightOrigin } from '../onnx/onnx-model';

/** Learned embeddings that stand for one word of a prompt; they stay in the file until the merge. */
export interface TextualInversion {
  format: 'diffusers' | 'a1111';
  /** The word it was trained with; a1111's files do not contain it. */
  token: string | undefined;
  /** Number of embeddings; each takes the place of one token. */
  count: number;
  width: number;
  /** [count, width] */
  vectors: SafetensorsInfo;
}

/** The only tensor of a1111's files. */
const A1111_KEY = 'emb_params';

/**
 * Whether a file's tensors are a textual inversion. diffusers stores a single tensor named after the token, a1111 one
 * named `emb_params`; for models with several text encoders both store one tensor per encoder.
 */
export function isTextualInversion(entries: ReadonlyMap<string, SafetensorsInfo>): boolean {
  const shapes = [...entries.values()].map(({ shape }) => shape.length);
  const areRows = shapes.length > 0 && shapes.every((rank) => rank === 1 || rank === 2);
  return (
    areRows && (entries.has('clip_l') || (shapes.length === 1 && !/\.(weight|alpha)$/.test([...entries.keys()][0])))
  );
}

/**
 * @throws WeightsError if the tensor is not a list of embeddings, or there is one for each of several text encoders.
 */
export function parseTextualInversion(entries: ReadonlyMap<string, SafetensorsInfo>): TextualInversion {
  const [[key, entry]] = entries;
  if (entries.size > 1) {
    const keys = [...entries.keys()].slice(0, 3).map(quote).join(', ');
    throw misfit(`The embeddings ${keys} are for a model with several text encoders.`);
  }
  if (!['F64', 'F32', 'F16', 'BF16'].includes(entry.dtype))
    throw malformed(`The tensor ${quote(key)} has the type ${entry.dtype}, which is not a floating-point type.`);
  const [count, width] = entry.shape.length === 1 ? [1, entry.shape[0]] : entry.shape;
  if (count === 0 || width === 0)
    throw malformed(`The tensor ${quote(key)} of shape ${shapeText(entry.shape)} is empty.`);
  const isA1111 = key === A1111_KEY;
  return { format: isA1111 ? 'a1111' : 'diffusers', token: isA1111 ? undefined : key, count, width, vectors: entry };
}

/** Reads the vectors once. @throws WeightsError if a value is not finite. */
export function assertFiniteVectors({ token, vectors }: TextualInversion, source: ByteSource): void {
  if (!isFiniteTensor(source, vectors))
    throw malformed(`The tensor ${quote(token ?? A1111_KEY)} has values that are not finite.`);
}

/** The text encoder of a base model, and its table of token embeddings [tokens, width]. */
interface TokenEmbedding {
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
  if (dims[1] !== width)
    throw misfit(
      `The embedding has the shape ${shapeText([count, width])}; the base model's token embeddings are ${shapeText(dims)}.`,
    );
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
  const config = await readJsonFile(join(baseFolder, 'text_encoder', 'config.json'), { optional: true });
  return positive(config?.max_position_embeddings) ?? DEFAULT_POSITIONS;
}
