let decoded: Float32Array | undefined;

/** IEEE 754 half-precision bits to float32, exactly, by a table of all 65,536 values. */
export function decodeFloat16(bits: Uint16Array): Float32Array {
  const table = (decoded ??= buildTable());
  const values = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) values[i] = table[bits[i]];
  return values;
}

/** float32 to half-precision bits, rounded to nearest, ties to even; overflow becomes infinity. */
export function encodeFloat16(values: Float32Array): Uint16Array {
  const source = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const bits = new Uint16Array(values.length);
  for (let i = 0; i < source.length; i++) bits[i] = encodeOne(source[i]);
  return bits;
}

/** bfloat16 (the upper halves of float32 values) to float32, exactly. */
export function decodeBfloat16(bits: Uint16Array): Float32Array {
  const words = new Uint32Array(bits.length);
  for (let i = 0; i < bits.length; i++) words[i] = bits[i] << 16;
  return new Float32Array(words.buffer);
}

/** float32 to bfloat16 bits, rounded to nearest, ties to even. */
export function encodeBfloat16(values: Float32Array): Uint16Array {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const bits = new Uint16Array(values.length);
  for (let i = 0; i < words.length; i++)
    // Rounding would make an infinity of some that are no number.
    bits[i] = Number.isNaN(values[i]) ? 0x7fc0 : (words[i] + 0x7fff + ((words[i] >>> 16) & 1)) >>> 16;
  return bits;
}

/** Eight bits with four of exponent and no infinity (`float8_e4m3fn`) as a number. */
export function decodeE4m3(bits: number): number {
  const [sign, exponent, fraction] = [bits & 0x80 ? -1 : 1, (bits >> 3) & 15, bits & 7];
  if ((bits & 0x7f) === 0x7f) return NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -9 : (1 + fraction / 8) * 2 ** (exponent - 7));
}

function buildTable(): Float32Array {
  const table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 0x1f;
    const fraction = bits & 0x3ff;
    if (exponent === 0) table[bits] = sign * fraction * 2 ** -24;
    else if (exponent === 31) table[bits] = fraction ? NaN : sign * Infinity;
    else table[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return table;
}

function encodeOne(word: number): number {
  const sign = (word >>> 16) & 0x8000;
  const magnitude = word & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  // 65520, half-way between the largest half and the next power of two, rounds up to infinity.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  // Below 2^-14 a half is subnormal: multiples of 2^-24.
  if (magnitude < 0x38800000) return sign | roundSubnormal(magnitude);
  const rebiased = magnitude - 0x38000000;
  return sign | ((rebiased + 0xfff + ((rebiased >>> 13) & 1)) >>> 13);
}

const scratch = new Float32Array(1);
const scratchWord = new Uint32Array(scratch.buffer);

function roundSubnormal(magnitude: number): number {
  scratchWord[0] = magnitude;
  const scaled = scratch[0] * 2 ** 24;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
