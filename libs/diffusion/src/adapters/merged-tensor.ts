import { open } from 'node:fs/promises';
import { countOf, type NamedTensor, readValues } from '../weights/named-tensor';
import { quote } from '../safetensors/quote';
import { safetensorsHeader } from '../safetensors/write-safetensors';
import type { AdapterLayer, FittedAdapter, MergedTensor } from './adapter';
import type { Delta } from './deltas';
import { cutRows, type Rows, swapAxes } from './matrices';
import { misfit, shapeText, unsupported } from './weights-error';

/** A DoRA's lengths, which the changed weight's rows or columns are brought to. */
interface Magnitude {
  read(): Promise<Float32Array>;
  isOfOutputs: boolean;
}

/**
 * @param rows those of the layer's outputs that are meant, if not all
 * @throws WeightsError if there are not as many as rows or columns
 */
export function magnitudeOf(
  { key, factors }: AdapterLayer,
  shape: readonly number[],
  rows: Rows = { index: 0, count: 1, isSwapped: false },
): Magnitude | undefined {
  const [ofPeft, ofKohya] = [factors.get('lora_magnitude_vector'), factors.get('dora_scale')];
  const tensor = ofPeft ?? ofKohya;
  if (!tensor) return undefined;
  // peft has one for each output, [1, out, 1, 1] for a convolution; kohya's may be [1, in] instead.
  const out = shape[0] * rows.count;
  const isOfOutputs = tensor === ofPeft || tensor.shape[0] === out;
  if (!isOfOutputs && rows.count > 1)
    throw unsupported(
      `The key ${quote(key)} is for ${rows.count} layers, and its magnitudes are of their inputs together; those of outputs are accepted.`,
    );
  if (countOf(tensor.shape) !== (isOfOutputs ? out : shape[1]))
    throw misfit(
      `The key ${quote(key)} has magnitudes of shape ${shapeText(tensor.shape)} for a weight of shape ${shapeText(shape)}.`,
    );
  const read = async (): Promise<Float32Array> => {
    const lengths = await readValues(tensor);
    return isOfOutputs ? cutRows(lengths, rows) : lengths;
  };
  return { read, isOfOutputs };
}

/** A tensor that gains `factor` times what is added, and of a DoRA its lengths. */
export function mergedTensor(base: NamedTensor, added: Delta, factor: number, magnitude?: Magnitude): MergedTensor {
  const read = async (scale: number): Promise<Float32Array> => {
    const values = await valuesOf(base);
    const delta = await added.read();
    if (!magnitude) return values.map((value, i) => value + scale * factor * delta[i]);
    const changed = values.map((value, i) => value + factor * delta[i]);
    decompose(changed, base.shape, await magnitude.read(), magnitude.isOfOutputs);
    return values.map((value, i) => value + scale * (changed[i] - value));
  };
  return { base, read };
}

/**
 * Brings rows (outputs) or columns (inputs, each with its kernel) of a weight to some lengths.
 * Source: https://arxiv.org/abs/2402.09353, equation 5.
 */
function decompose(weight: Float32Array, shape: readonly number[], lengths: Float32Array, isOfOutputs: boolean): void {
  const taps = countOf(shape.slice(2));
  const lineOf = (i: number): number =>
    isOfOutputs ? Math.floor(i / (taps * shape[1])) : Math.floor(i / taps) % shape[1];
  const squares = new Float64Array(lengths.length);
  for (let i = 0; i < weight.length; i++) squares[lineOf(i)] += weight[i] ** 2;
  const factors = squares.map((square, line) => lengths[line] / (Math.sqrt(square) || 1));
  for (let i = 0; i < weight.length; i++) weight[i] *= factors[lineOf(i)];
}

/** An adapter that changes weights, and its scale. */
export interface MergedUse {
  adapter: Pick<FittedAdapter, 'merged'>;
  scale: number;
}

/**
 * Writes the tensors that adapters change, merged at their scales, as safetensors in float32. Changes of several
 * adapters are added.
 * @param file path of the file, which must not exist. Its tensors have the names of the model's, after their part:
 * `unet.conv_in.weight`
 */
export async function writeMerged(uses: readonly MergedUse[], file: string): Promise<void> {
  const tensors = new Map<string, { base: NamedTensor; reads: (() => Promise<Float32Array>)[] }>();
  for (const { adapter, scale } of uses)
    for (const [part, ofPart] of adapter.merged)
      for (const [name, tensor] of ofPart) {
        const known = tensors.get(`${part}.${name}`) ?? { base: tensor.base, reads: [] };
        known.reads.push(() => tensor.read(scale));
        tensors.set(`${part}.${name}`, known);
      }
  const header = safetensorsHeader(new Map([...tensors].map(([name, { base }]) => [name, base])));
  const output = await open(file, 'wx');
  try {
    await output.writeFile(header);
    for (const { base, reads } of tensors.values()) {
      const values = await sumOfChanges(base, reads);
      await output.writeFile(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    }
    await output.sync();
  } finally {
    await output.close();
  }
}

async function sumOfChanges(base: NamedTensor, reads: readonly (() => Promise<Float32Array>)[]): Promise<Float32Array> {
  const [first, ...others] = reads;
  const values = await first();
  if (others.length === 0) return values;
  const before = await valuesOf(base);
  for (const read of others) {
    const changed = await read();
    for (let i = 0; i < values.length; i++) values[i] += changed[i] - before[i];
  }
  return values;
}

async function valuesOf(base: NamedTensor): Promise<Float32Array> {
  const stored = await readValues(base);
  return base.isTransposed ? swapAxes(stored, base.shape[1], base.shape[0]) : stored;
}
