import { countOf, type NamedTensor, readValues } from '../weights/named-tensor';
import type { AdapterLayer } from './adapter';
import type { Factor } from './keys';
import { hadamard, kronecker, multiply, rowPairs, rowProducts, swapAxes } from './matrices';
import { malformed, quote, shapeText, type WeightsError } from './weights-error';

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

/** What a tensor gains, before alpha and strength. */
export interface Delta extends Matrix {
  /** What alpha is divided by: of a LoKr of whole factors what the metadata says; a full difference has none. */
  rank?: number | 'told';
  /** The same as two factors, where there are such. */
  pair?: Pair;
  /** The largest rank of what is multiplied. */
  innerRank: number;
}

type Parameter = 'weight' | 'bias';

/** The changes of a layer's parameters. @throws WeightsError if they are malformed */
export function deltasOf({ key, factors }: AdapterLayer): [Parameter, Delta][] {
  const own = ofLayer(key);
  const get = (factor: Factor): NamedTensor => {
    const tensor = factors.get(factor);
    if (!tensor) throw own(`has no ${factor} factor`);
    return tensor;
  };
  const half = (name: 'hada_w1' | 'hada_w2' | 'lokr_w1' | 'lokr_w2', core?: NamedTensor): Pair =>
    pairOf(key, get(`${name}_a`), get(`${name}_b`), core, core !== undefined);
  const forms: Readonly<Record<string, () => Delta>> = {
    diff: () => ({ ...stored(get('diff')), innerRank: 0 }),
    lora() {
      const pair = pairOf(key, get('up'), get('down'), factors.get('mid'));
      return { ...product(pair), pair, rank: pair.rank, innerRank: pair.rank };
    },
    hada: () => hadamardOf(key, half('hada_w1', factors.get('hada_t1')), half('hada_w2', factors.get('hada_t2'))),
    lokr() {
      const [first, second] = [factors.get('lokr_w1'), factors.get('lokr_w2')];
      return kroneckerOf(first ?? half('lokr_w1'), second ?? half('lokr_w2', factors.get('lokr_t2')));
    },
  };
  const known = [...factors.keys()].flatMap((factor) =>
    ['up', 'down', 'mid'].includes(factor) ? 'lora' : (/^(?:hada|lokr|diff$)/.exec(factor)?.[0] ?? []),
  );
  const [form, other] = new Set(known);
  if (other !== undefined) throw own(`has factors of ${form} and ${other}`);
  const bias = factors.get('diff_b');
  if (form === undefined && !bias) throw own('has no factors');
  return [
    ...(form === undefined ? [] : [['weight', forms[form]()] as [Parameter, Delta]]),
    ...(bias ? [['bias', { ...stored(bias), innerRank: 0 }] as [Parameter, Delta]] : []),
  ];
}

const ofLayer =
  (key: string) =>
  (sentence: string): WeightsError =>
    malformed(`The layer of ${quote(key)} ${sentence}.`);

const columnsOf = ({ shape }: Matrix): number => countOf(shape.slice(1));

const stored = (tensor: NamedTensor): Matrix => ({ shape: tensor.shape, read: () => readValues(tensor) });

const product = ({ up, down, rank }: Pair): Matrix => ({
  shape: [up.shape[0], ...down.shape.slice(1)],
  read: async () => multiply(await up.read(), await down.read(), rank),
});

const isFlat = ([, ...columns]: readonly number[]): boolean =>
  columns.length > 0 && columns.slice(1).every((length) => length === 1);

/**
 * @param core the middle factor [rank, rank, height, width] of a convolution in Tucker form, whose others have no kernel
 * @param isTurned whether `up` is [rank, out]
 */
function pairOf(key: string, up: NamedTensor, down: NamedTensor, core?: NamedTensor, isTurned = false): Pair {
  const [out, rank] = isTurned ? up.shape.toReversed() : up.shape;
  const own = ofLayer(key);
  if (!isFlat(up.shape) || ![2, 4].includes(down.shape.length) || down.shape[0] !== rank)
    throw own(`has the factors ${shapeText(down.shape)} and ${shapeText(up.shape)}, which do not multiply`);
  const readUp = async (): Promise<Float32Array> => swapAxes(await readValues(up), rank, out);
  const upper = { shape: [out, rank], read: isTurned ? readUp : () => readValues(up) };
  if (!core) return { up: upper, down: stored(down), rank };
  const [first, second, ...kernel] = core.shape;
  if (!isFlat(down.shape) || kernel.length !== 2 || first !== rank || second !== rank)
    throw own(`has a middle factor ${shapeText(core.shape)} that does not fit ${shapeText(down.shape)}`);
  const [, into] = down.shape;
  const taps = countOf(kernel);
  // down[a, i, k] = sum over b of core[a, b, k] * down[b, i]
  const fold = async (): Promise<Float32Array> =>
    swapAxes(await multiply(swapAxes(await readValues(core), rank, taps), await readValues(down), rank), taps, into);
  return { up: upper, down: { shape: [rank, into, ...kernel], read: fold }, rank };
}

/** LoHa: (u1 d1) * (u2 d2), value by value, which is also one product whose rank is that of both together. */
function hadamardOf(key: string, first: Pair, second: Pair): Delta {
  const [one, other] = [product(first), product(second)];
  if (one.shape.join() !== other.shape.join())
    throw ofLayer(key)(`has the factors ${shapeText(one.shape)} and ${shapeText(other.shape)}`);
  const [out, ...into] = one.shape;
  const rank = first.rank * second.rank;
  const joined = (shape: number[], join: typeof rowPairs, [left, right]: Matrix[], length: number): Matrix => ({
    shape,
    read: async () => join(await left.read(), await right.read(), length),
  });
  const up = joined([out, rank], rowProducts, [first.up, second.up], out);
  const down = joined([rank, ...into], rowPairs, [first.down, second.down], columnsOf(one));
  const read = async (): Promise<Float32Array> => hadamard(await one.read(), await other.read());
  const innerRank = Math.max(first.rank, second.rank);
  return { shape: one.shape, read, rank: first.rank, pair: { up, down, rank }, innerRank };
}

/** LoKr: every value of the first times the whole of the second. Either is stored whole, or as a pair. */
function kroneckerOf(first: NamedTensor | Pair, second: NamedTensor | Pair): Delta {
  const [one, other] = [first, second].map((side) => ('up' in side ? product(side) : stored(side)));
  const ranks = [second, first].flatMap((side) => ('up' in side ? [side.rank] : []));
  const shape = [one.shape[0] * other.shape[0], one.shape[1] * other.shape[1], ...other.shape.slice(2)];
  const read = async (): Promise<Float32Array> =>
    kronecker(await one.read(), columnsOf(one), await other.read(), columnsOf(other));
  return { shape, read, rank: ranks[0] ?? 'told', innerRank: Math.max(0, ...ranks) };
}
