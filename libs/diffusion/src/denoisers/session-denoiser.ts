import { AdapterInputs, type LayerAdapters } from '../adapters/row-adapters';
import { type Device, providerOf } from '../sessions/device';
import type { GraphSession } from '../sessions/model-session';
import type { Tensors } from '../sessions/tensor';
import type { LatentShape } from '../tensor/planes';
import type { Denoiser, DenoiserRow } from './denoiser';

/** The largest power of two that is at most `rows`. */
export function powerOfTwoUpTo(rows: number): number {
  return 2 ** Math.floor(Math.log2(Math.max(1, rows)));
}

/** The smallest power of two that is at least `rows`. */
export function powerOfTwoFrom(rows: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, rows)));
}

/** A GPU plans each number of rows anew, so that there calls have a power of two of them. */
export function hasCallsInPowersOfTwo(device: Device): boolean {
  return providerOf(device) !== 'cpu';
}

/** A denoiser that is one graph: its rows may be at different timesteps, and of different Fine-Tunes. */
export abstract class SessionDenoiser implements Denoiser {
  private readonly adapterInputs: AdapterInputs;
  /** The adapters of the last call: the same rows mostly come again. */
  private last: { rows: readonly LayerAdapters[]; feeds: Tensors } | undefined;

  constructor(
    protected readonly session: GraphSession,
    private readonly device: Device,
  ) {
    this.adapterInputs = new AdapterInputs(session.inputs);
  }

  get inputs(): GraphSession['inputs'] {
    return this.session.inputs;
  }

  get spent(): GraphSession['spent'] {
    return this.session.spent;
  }

  rowsOfCall(rows: number): number {
    return hasCallsInPowersOfTwo(this.device) ? powerOfTwoFrom(rows) : rows;
  }

  abstract predict(rows: readonly DenoiserRow[], shape: LatentShape): Promise<Float32Array[]>;

  release(): Promise<void> {
    return this.session.release();
  }

  /** The rows of a call: those that only fill it up are the last one again. */
  protected filled(rows: readonly DenoiserRow[]): DenoiserRow[] {
    return Array.from({ length: this.rowsOfCall(rows.length) }, (_, i) => rows[Math.min(i, rows.length - 1)]);
  }

  protected adapterFeeds(rows: readonly DenoiserRow[], isShared?: boolean): Tensors {
    const own = rows.map(({ adapters }) => adapters);
    const isSame = this.last?.rows.length === own.length && own.every((row, i) => row === this.last!.rows[i]);
    if (!isSame) this.last = { rows: own, feeds: this.adapterInputs.feeds(own, isShared) };
    return this.last!.feeds;
  }
}

/** The predictions that a call gives for its first rows. */
export function firstRows(values: Float32Array, count: number, rowsOfCall: number): Float32Array[] {
  const size = values.length / rowsOfCall;
  return Array.from({ length: count }, (_, row) => values.subarray(row * size, (row + 1) * size));
}
