/** Angles by which transformers turn the heads of a token at its position. */
import type { Value } from '../graph/graph';
import type { Rotary } from '../graph/layers';
import type { Module } from '../graph/module';
import { UnsupportedConfigError } from '../errors';

/** Cosines and sines, each [positions, half of a head]: the inputs `rotary_cos` and `rotary_sin` of a graph. */
export interface RotaryPositions {
  cos: Float32Array;
  sin: Float32Array;
  positions: number;
}

/** Edges of a picture's latents. */
export interface LatentSize {
  height: number;
  width: number;
}

/** Widths that each axis of a position has in a head, and the base of their frequencies. */
export interface RotaryConfig {
  axesDims: readonly number[];
  ropeTheta: number;
}

/**
 * Source: `get_1d_rotary_pos_embed` of diffusers' `models/embeddings.py`, in float64.
 * @param ids the place of each position along each axis
 * @param rounded an angle as the model has it
 */
export function rotaryPositions(
  ids: readonly (readonly number[])[],
  { axesDims, ropeTheta }: RotaryConfig,
  rounded = (angle: number): number => angle,
): RotaryPositions {
  const frequencies = axesDims.flatMap((dim, axis) =>
    Array.from({ length: dim / 2 }, (_, i) => ({ axis, frequency: 1 / ropeTheta ** ((2 * i) / dim) })),
  );
  const angles = ids.flatMap((id) => frequencies.map(({ axis, frequency }) => rounded(id[axis] * frequency)));
  return {
    cos: Float32Array.from(angles, Math.cos),
    sin: Float32Array.from(angles, Math.sin),
    positions: ids.length,
  };
}

/** 0, 1 and so on. */
export const range = (length: number): number[] => Array.from({ length }, (_, i) => i);

/**
 * The inputs for `rotaryPositions`, for heads of this width.
 * @param key of the axes, in `config.json`
 * @param width values of a position: one for each pair of a head, if not one for each of its values
 * @throws UnsupportedConfigError for axes that make other heads
 */
export function rotaryInputs(
  m: Module,
  headDim: number,
  { axesDims }: RotaryConfig,
  key: string,
  width = headDim / 2,
): Rotary {
  if (axesDims.reduce((sum, dim) => sum + dim, 0) !== headDim)
    throw new UnsupportedConfigError(`"${key}" is [${axesDims.join()}], and a head of the weights is ${headDim} wide.`);
  const input = (name: string): Value => m.input(name, ['positions', width]);
  return { cos: input('rotary_cos'), sin: input('rotary_sin'), isInterleaved: true };
}
