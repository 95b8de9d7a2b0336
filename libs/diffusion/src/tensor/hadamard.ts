/**
 * Values that a rotation mixes, of rows of `width`: the largest power of four up to 256 of which a row is whole blocks.
 */
export const rotationOf = (width: number): number => [256, 64, 16, 4].find((block) => width % block === 0) ?? 1;

/**
 * Multiplies each block of values by the regular Hadamard matrix of its size, in place. That spreads a few large values
 * over the block, and undoes itself. The matrix is a Kronecker power of [[1, 1, 1, -1], [1, 1, -1, 1], [1, -1, 1, 1],
 * [-1, 1, 1, 1]] / 2, as of the files that are called "int8 convrot". Source: https://arxiv.org/abs/2512.03673.
 */
export function rotate(values: Float32Array, block: number): void {
  for (let at = 0; at < values.length; at += block)
    for (let step = 1; step < block; step *= 4)
      for (let begin = at; begin < at + block; begin += 4 * step)
        for (let i = begin; i < begin + step; i++) {
          const j = i + step;
          const k = j + step;
          const l = k + step;
          // Plain constants: an array to take apart makes the loop three times as long.
          const a = values[i];
          const b = values[j];
          const c = values[k];
          const d = values[l];
          const half = (a + b + c + d) / 2;
          values[i] = half - d;
          values[j] = half - c;
          values[k] = half - b;
          values[l] = half - a;
        }
}

/** The matrix that {@link rotate} multiplies by, [block, block]; it is symmetric. */
export function hadamard(block: number): Float32Array {
  const matrix = new Float32Array(block ** 2);
  for (let i = 0; i < block; i++) matrix[i * block + i] = 1;
  rotate(matrix, block);
  return matrix;
}
