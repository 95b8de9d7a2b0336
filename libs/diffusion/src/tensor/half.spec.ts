import { decodeE4m3, decodeFloat16, encodeFloat16 } from './half';

describe('encodeFloat16', () => {
  it('preserves the bits of every half-precision value', () => {
    const bits = Uint16Array.from({ length: 65536 }, (_, i) => i).filter(
      (b) => (b & 0x7c00) !== 0x7c00 || !(b & 0x3ff),
    );
    expect(encodeFloat16(decodeFloat16(bits))).toEqual(bits);
  });

  it.each([
    [1 + 2 ** -11, 0x3c00],
    [1 + 3 * 2 ** -11, 0x3c02],
    [1 + 2 ** -11 + 2 ** -20, 0x3c01],
    [65519, 0x7bff],
    [65520, 0x7c00],
    [-1e9, 0xfc00],
    [2 ** -25, 0x0000],
    [2 ** -25 * 1.001, 0x0001],
    [3 * 2 ** -25, 0x0002],
    [2 ** -14 - 2 ** -26, 0x0400],
    [-0, 0x8000],
    [NaN, 0x7e00],
  ])('rounds %d to the nearest, ties to even', (value, expected) => {
    expect(encodeFloat16(Float32Array.of(value))[0]).toBe(expected);
  });
});

// Source: "FP8 Formats for Deep Learning" (Micikevicius et al. 2022), table 2.
it.each([
  [0x00, 0],
  [0x01, 2 ** -9],
  [0x07, 0.875 * 2 ** -6],
  [0x08, 2 ** -6],
  [0x38, 1],
  [0xb9, -1.125],
  [0x7e, 448],
  [0x7f, NaN],
])('decodeE4m3 gives for the bits %i the number %d', (bits, value) => expect(decodeE4m3(bits)).toBe(value));
