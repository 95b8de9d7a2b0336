import { hadamard, rotate, rotationOf } from './hadamard';

describe(rotate, () => {
  it('multiplies by the Kronecker powers of the regular Hadamard matrix of four', () => {
    const four = [1, 1, 1, -1, 1, 1, -1, 1, 1, -1, 1, 1, -1, 1, 1, 1].map((sign) => sign / 2);
    expect([...hadamard(4)]).toEqual(four);
    const powers = Array.from({ length: 256 }, (_, i) => {
      const [row, column] = [Math.floor(i / 16), i % 16];
      return four[4 * (row >> 2) + (column >> 2)] * four[4 * (row & 3) + (column & 3)];
    });
    expect([...hadamard(16)]).toEqual(powers);
  });

  it('undoes itself, in each block by itself', () => {
    const values = Float32Array.from({ length: 512 }, (_, i) => i % 7);
    const rotated = values.slice();
    rotate(rotated, 256);
    expect(rotated.subarray(0, 256)).not.toEqual(values.subarray(0, 256));
    rotate(rotated, 256);
    expect(rotated).toEqual(values);
  });

  it.each([
    [3072, 256],
    [640, 64],
    [48, 16],
    [12, 4],
    [6, 1],
  ])('is of blocks for rows of %d values: %d', (width, block) => expect(rotationOf(width)).toBe(block));
});
