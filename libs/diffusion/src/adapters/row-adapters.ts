import { groupRank } from '../graph/layers';
import type { ValueFacts } from '../sessions/model-session';
import { float32, type Tensor, type Tensors } from '../sessions/tensor';
import { countOf } from '../weights/named-tensor';

/** The term that an adapter adds to a layer: B A. */
export interface LowRank {
  rank: number;
  /** [rank, ...in], as the layer's weight has its inputs. */
  a: Float32Array;
  /** [out, rank], already scaled. */
  b: Float32Array;
}

/** Terms that the adapters of a row add to the layers of one part, by the layers' paths. */
export type LayerAdapters = ReadonlyMap<string, LowRank>;

export const noAdapters: LayerAdapters = new Map();

/** Several adapters of one row as one: their ranks stand side by side, each with its scale. */
export function sideBySide(parts: readonly { layers: LayerAdapters; scale: number }[]): LayerAdapters {
  const found = new Map<string, LowRank>();
  for (const path of new Set(parts.flatMap(({ layers }) => [...layers.keys()]))) {
    const own = parts.flatMap(({ layers, scale }) => {
      const low = layers.get(path);
      return low && scale !== 0 ? [{ low, scale }] : [];
    });
    if (own.length === 0) continue;
    if (own.length === 1) {
      const [{ low, scale }] = own;
      found.set(path, scale === 1 ? low : { ...low, b: low.b.map((value) => scale * value) });
      continue;
    }
    const rank = own.reduce((sum, { low }) => sum + low.rank, 0);
    const a = new Float32Array(own.reduce((sum, { low }) => sum + low.a.length, 0));
    const out = own[0].low.b.length / own[0].low.rank;
    const b = new Float32Array(out * rank);
    let first = 0;
    for (const { low, scale } of own) {
      a.set(low.a, (a.length / rank) * first);
      for (let row = 0; row < out; row++)
        for (let r = 0; r < low.rank; r++) b[row * rank + first + r] = scale * low.b[row * low.rank + r];
      first += low.rank;
    }
    found.set(path, { rank, a, b });
  }
  return found;
}

/**
 * Equal for rows that may share a call: those of equal ranks in each layer, because a padded rank would change the last
 * bits. A row without an adapter goes with any.
 */
export function ranksOf(adapters: LayerAdapters): string {
  const ranks = new Set([...adapters.values()].map(({ rank }) => rank));
  if (ranks.size <= 1) return [...ranks].join('');
  return [...adapters]
    .map(([path, { rank }]) => `${path}:${rank}`)
    .sort()
    .join();
}

interface AdaptedLayer {
  path: string;
  /** Inputs of the layer, as its weight has them. */
  into: readonly number[];
  out: number;
}

/** The rank that a row's factors have as inputs, where zeros fill them up. */
const inputRank = (rank: number): number => (rank > groupRank ? Math.ceil(rank / groupRank) * groupRank : rank);

const suffixes = { a: '.lora_A', b: '.lora_B' };

/** The adapters of the rows of a graph's calls, as its inputs. */
export class AdapterInputs {
  private readonly layers: readonly AdaptedLayer[];

  constructor(inputs: readonly ValueFacts[]) {
    const shapes = new Map(inputs.map(({ name, shape }) => [name, shape]));
    this.layers = [...shapes].flatMap(([name, shape]) => {
      if (!name.endsWith(suffixes.a)) return [];
      const path = name.slice(0, -suffixes.a.length);
      return [{ path, into: shape.slice(2) as number[], out: Number(shapes.get(path + suffixes.b)![1]) }];
    });
  }

  /**
   * If all rows have the same adapters, the inputs have one row of them, which all rows of a call take.
   * @param isShared whether that may be
   * @throws RangeError if two rows have other ranks in one layer
   */
  feeds(adapters: readonly LayerAdapters[], isShared = true): Tensors {
    const feeds: Record<string, Tensor> = {};
    const rows = isShared && adapters.every((each) => each === adapters[0]) ? adapters.slice(0, 1) : adapters;
    for (const { path, into, out } of this.layers) {
      const own = rows.map((row) => row.get(path));
      const given = own.find((low) => low)?.rank ?? 0;
      const rank = inputRank(given);
      const size = countOf(into);
      const [single] = own;
      if (rows.length === 1 && single?.rank === rank) {
        feeds[path + suffixes.a] = float32(single.a, [1, rank, ...into]);
        feeds[path + suffixes.b] = float32(single.b, [1, out, rank]);
        continue;
      }
      const [a, b] = [new Float32Array(rows.length * rank * size), new Float32Array(rows.length * out * rank)];
      for (const [row, low] of own.entries()) {
        if (!low) continue;
        if (low.rank !== given) throw new RangeError(`The rows of a call have different ranks in ${path}.`);
        a.set(low.a, row * rank * size);
        if (given === rank) b.set(low.b, row * out * rank);
        else for (let i = 0; i < out; i++) b.set(low.b.subarray(i * given, (i + 1) * given), (row * out + i) * rank);
      }
      feeds[path + suffixes.a] = float32(a, [rows.length, rank, ...into]);
      feeds[path + suffixes.b] = float32(b, [rows.length, out, rank]);
    }
    return feeds;
  }
}
