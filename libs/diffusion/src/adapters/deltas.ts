import { countOf, type NamedTensor, readValues } from '../weights/named-tensor';
import { quote } from '../safetensors/quote';
import type { AdapterLayer } from './adapter';
import type { Factor } from './keys';
import { cutRows, kronecker, multiply, type Rows, swapAxes } from './matrices';
import { malformed, misfit, shapeText, type WeightsError } from './weights-error';

/** A matrix of which nothing is read yet; its columns may have several axes. */
interface Matrix {
  shape: readonly number[];
  read(): Promise<Float32Array>;
}

/** Two factors that are to be multiplied: [out, rank] and [rank, ...in]. */
export interface Pair {
  up: Matrix;
  down: Matrix;
  rank: number;
}

/** Values that a tensor gains, before alpha and scale. */
export interface Delta extends Matrix {
  /** Divisor of alpha: of a LoKr of whole factors what the metadata says; a full difference has none. */
  rank?: number | 'told';
  /** The same as two factors, if it is of low rank. */
  pair?: Pair;
  /** The largest rank of what is multiplied. */
  innerRank: number;
}

type Form = 'lora' | 'hada' | 'lokr' | 'diff';

const forms: Readonly<Record<Form, (layer: AdapterLayer) => Delta>> = { lora, hada, lokr, diff };

/**
 * The changes of a layer's parameters.
 * @param rows those of the outputs that are meant, if not all
 * @throws WeightsError if they are malformed
 */
export function deltasOf(layer: AdapterLayer, rows?: Rows): ['weight' | 'bias', Delta][] {
  const { factors } = layer;
  const [form, other] = new Set([...factors.keys()].flatMap(formOf));
  if (other) throw ofLayer(layer, `has factors of ${form} and ${other}`);
  const bias = factors.get('diff_b');
  if (!form && !bias) throw ofLayer(layer, 'has no factors');
  const deltas: ReturnType<typeof deltasOf> = [];
  if (form) deltas.push(['weight', forms[form](layer)]);
  if (bias) deltas.push(['bias', whole(bias)]);
  return rows ? deltas.map(([parameter, delta]) => [parameter, partOf(layer, delta, rows)]) : deltas;
}

function partOf(layer: AdapterLayer, delta: Delta, rows: Rows): Delta {
  const [out] = delta.shape;
  if (out % (rows.isSwapped ? 2 * rows.count : rows.count) !== 0)
    throw misfit(
      `The key ${quote(layer.key)} is for ${rows.count} equal layers; its weight has the shape ${shapeText(delta.shape)}.`,
    );
  const cut = (matrix: Matrix): Matrix => ({
    shape: [matrix.shape[0] / rows.count, ...matrix.shape.slice(1)],
    read: async () => cutRows(await matrix.read(), rows),
  });
  return { ...delta, ...cut(delta), ...(delta.pair && { pair: { ...delta.pair, up: cut(delta.pair.up) } }) };
}

function formOf(factor: Factor): Form | [] {
  if (['up', 'down', 'mid'].includes(factor)) return 'lora';
  return (/^(?:hada|lokr|diff$)/.exec(factor)?.[0] as Form | undefined) ?? [];
}

const ofLayer = ({ key }: AdapterLayer, sentence: string): WeightsError =>
  malformed(`The layer of ${quote(key)} ${sentence}.`);

function get(layer: AdapterLayer, factor: Factor): NamedTensor {
  const tensor = layer.factors.get(factor);
  if (!tensor) throw ofLayer(layer, `has no ${factor} factor`);
  return tensor;
}

function diff(layer: AdapterLayer): Delta {
  return whole(get(layer, 'diff'));
}

function lora(layer: AdapterLayer): Delta {
  const pair = pairOf(layer, 'up', 'down', 'mid');
  return { ...product(pair), pair };
}

/** LoHa: the products of two pairs, multiplied value by value. */
function hada(layer: AdapterLayer): Delta {
  const one = product(pairOf(layer, 'hada_w1_a', 'hada_w1_b', 'hada_t1'));
  const other = product(pairOf(layer, 'hada_w2_a', 'hada_w2_b', 'hada_t2'));
  if (one.shape.join() !== other.shape.join())
    throw ofLayer(layer, `has the factors ${shapeText(one.shape)} and ${shapeText(other.shape)}`);
  const read = async (): Promise<Float32Array> => {
    const values = await other.read();
    return (await one.read()).map((value, i) => value * values[i]);
  };
  return { ...one, read, innerRank: Math.max(one.innerRank, other.innerRank) };
}

/** LoKr: every value of the first matrix times the whole of the second. Either is stored whole, or as a pair. */
function lokr(layer: AdapterLayer): Delta {
  const [one, other] = (['lokr_w1', 'lokr_w2'] as const).map((name) => {
    const tensor = layer.factors.get(name);
    return tensor
      ? whole(tensor)
      : product(pairOf(layer, `${name}_a`, `${name}_b`, name === 'lokr_w2' ? 'lokr_t2' : undefined));
  });
  if (!isFlat(one.shape)) throw ofLayer(layer, `has the first factor ${shapeText(one.shape)}, which is no matrix`);
  const shape = [one.shape[0] * other.shape[0], one.shape[1] * other.shape[1], ...other.shape.slice(2)];
  const widths = [countOf(one.shape.slice(1)), countOf(other.shape.slice(1))] as const;
  const read = async (): Promise<Float32Array> => kronecker(await one.read(), await other.read(), widths);
  const innerRank = Math.max(one.innerRank, other.innerRank);
  return { shape, read, rank: other.rank ?? one.rank ?? 'told', innerRank };
}

const stored = (tensor: NamedTensor): Matrix => ({ shape: tensor.shape, read: () => readValues(tensor) });

const whole = (tensor: NamedTensor): Delta => ({ ...stored(tensor), innerRank: 0 });

const product = ({ up, down, rank }: Pair): Delta => ({
  shape: [up.shape[0], ...down.shape.slice(1)],
  read: async () => multiply(await up.read(), await down.read(), rank),
  rank,
  innerRank: rank,
});

/**
 * @param coreName a convolution's middle factor in Tucker form, [rank, rank, height, width]: then `up` and `down` have
 * no kernel, and LyCORIS stores the former as [rank, out], but for LoRA
 */
function pairOf(layer: AdapterLayer, upName: Factor, downName: Factor, coreName?: Factor): Pair {
  const [up, down, core] = [get(layer, upName), get(layer, downName), coreName && layer.factors.get(coreName)];
  const isTurned = core !== undefined && upName !== 'up';
  const [out, rank] = isTurned ? up.shape.toReversed() : up.shape;
  if (!isFlat(up.shape) || ![2, 4].includes(down.shape.length) || down.shape[0] !== rank)
    throw ofLayer(layer, `has the factors ${shapeText(down.shape)} and ${shapeText(up.shape)}, which do not multiply`);
  const turned = async (): Promise<Float32Array> => swapAxes(await readValues(up), rank, out);
  const upper = isTurned ? { shape: [out, rank], read: turned } : stored(up);
  if (!core) return { up: upper, down: stored(down), rank };
  const [first, second, ...kernel] = core.shape;
  if (!isFlat(down.shape) || first !== rank || second !== rank || kernel.length !== 2)
    throw ofLayer(layer, `has a middle factor ${shapeText(core.shape)} that does not fit ${shapeText(down.shape)}`);
  const taps = countOf(kernel);
  // down[a, i, k] = sum over b of core[a, b, k] * down[b, i]
  const folded = async (): Promise<Float32Array> => {
    const product = await multiply(swapAxes(await readValues(core), rank, taps), await readValues(down), rank);
    return swapAxes(product, taps, down.shape[1]);
  };
  return { up: upper, down: { shape: [rank, down.shape[1], ...kernel], read: folded }, rank };
}

/** Whether it is a matrix, or the kernel of a convolution of 1 x 1. */
const isFlat = (shape: readonly number[]): boolean => shape.length >= 2 && countOf(shape.slice(2)) === 1;
