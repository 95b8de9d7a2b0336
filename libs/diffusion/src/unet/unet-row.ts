import { Tensor } from '../sessions/onnx-runtime';
import type { LayerAdapters } from '../pipelines/row-adapters';
import { countOf } from '../weights/named-tensor';
import type { ControlNet } from './control-net';

/** One row of a call of the U-Net. */
export interface UnetRow {
  /** Latents as the U-Net sees them, [channels, height, width]. */
  sample: Float32Array;
  timestep: number;
  /** [tokens, width] */
  embedding: Float32Array;
  /** Of XL: the pooled text, and the sizes that the picture was cut from. */
  pooled?: Float32Array | undefined;
  timeIds?: readonly number[] | undefined;
  guidanceScale: number;
  adapters: LayerAdapters;
  /** The ControlNets that have a say in it. */
  controls?: readonly RowControl[] | undefined;
}

/** A ControlNet, and the picture that a row follows by it. */
export interface RowControl {
  controlNet: ControlNet;
  /** [3, height, width] of the picture, from 0 to 1. */
  map: Float32Array;
  scale: number;
}

/** A tensor of the values of each row. @param shape of one row */
export function packed<T>(rows: readonly T[], of: (row: T) => ArrayLike<number>, shape: readonly number[]): Tensor {
  const size = countOf(shape);
  const values = new Float32Array(rows.length * size);
  for (const [i, row] of rows.entries()) values.set(of(row), i * size);
  return new Tensor('float32', values, [rows.length, ...shape]);
}
