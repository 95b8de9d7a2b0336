import type { ValueFacts } from '../sessions/model-session';
import { float32, floatsOf, type Tensor, type Tensors } from '../sessions/tensor';
import type { LatentShape } from '../tensor/planes';
import { countOf } from '../weights/named-tensor';
import type { DenoiserRow, RowControl } from './denoiser';

type ControlNet = RowControl['controlNet'];

/**
 * Inputs of the U-Net for what the ControlNets of a call's rows add to its way down. A row without any beside others
 * adds zeros, and each row sums its own in its own order, so that it is the same beside any others.
 */
export class ControlResiduals {
  private readonly names: readonly string[];
  /** Where no row has a ControlNet: then the graph adds nothing. */
  private readonly none: Tensors;

  constructor(inputs: readonly ValueFacts[]) {
    this.names = inputs.map(({ name }) => name).filter((name) => /^(?:down|mid)_block_additional_residual/.test(name));
    this.none = Object.fromEntries(this.names.map((name) => [name, float32(new Float32Array(0), [0, 0, 0, 0])]));
  }

  async feeds(rows: readonly DenoiserRow[], shape: LatentShape): Promise<Tensors> {
    const nets = new Set(rows.flatMap(({ controls = [] }) => controls.map(({ controlNet }) => controlNet)));
    if (nets.size === 0) return this.none;
    const given = new Map<ControlNet, Tensors>();
    for (const net of nets) {
      const own = rows.flatMap((row) =>
        (row.controls ?? []).flatMap(({ controlNet, map, scale }) => (controlNet === net ? [{ row, map, scale }] : [])),
      );
      given.set(net, await net.residuals(own, shape));
    }
    return Object.fromEntries(this.names.map((name) => [name, sumOf(name, rows, given)]));
  }
}

/** One input of the U-Net: for each row the sum of what its ControlNets give. */
function sumOf(name: string, rows: readonly DenoiserRow[], given: ReadonlyMap<ControlNet, Tensors>): Tensor {
  const [some] = given.values();
  const [, ...shape] = some[name].dims;
  const size = countOf(shape);
  const sums = new Float32Array(rows.length * size);
  /** How many rows of a ControlNet's results are taken: they come in the order of the call's rows. */
  const taken = new Map<ControlNet, number>();
  for (const [i, { controls = [] }] of rows.entries()) {
    const sum = sums.subarray(i * size, (i + 1) * size);
    for (const [k, { controlNet }] of controls.entries()) {
      const at = taken.get(controlNet) ?? 0;
      taken.set(controlNet, at + 1);
      const own = floatsOf(given.get(controlNet)![name]).subarray(at * size, (at + 1) * size);
      if (k === 0) sum.set(own);
      else for (let j = 0; j < size; j++) sum[j] += own[j];
    }
  }
  return float32(sums, [rows.length, ...shape]);
}
