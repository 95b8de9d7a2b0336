import { quote, shapeText, WeightsError } from '../finetune/weights-error';
import { isFiniteTensor } from '../safetensors/safetensors';
import type { SafetensorsInfo } from '../safetensors/safetensors-header';
import type { ByteSource } from '../tensor/byte-source';

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
    throw new WeightsError(
      'WeightsDoNotFitModel',
      `The embeddings ${keys} are for a model with several text encoders.`,
    );
  }
  if (!['F64', 'F32', 'F16', 'BF16'].includes(entry.dtype)) {
    throw malformed(`The tensor ${quote(key)} has the type ${entry.dtype}, which is not a floating-point type.`);
  }
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

function malformed(sentence: string): WeightsError {
  return new WeightsError('WeightsMalformed', sentence);
}
