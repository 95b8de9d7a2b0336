import { RequestError } from '../errors';

const block = 16;
const half = block / 2;
const twoPi = Math.fround(2 * Math.PI);

/** Words of the Mersenne Twister's state, and the distance of those that are mixed. */
const stateSize = 624;
const stateMiddle = 397;

/**
 * Normal noise with torch's numbers: equal to `torch.Generator().manual_seed(seed)` on the CPU with `torch.randn` in
 * float32, within 1e-6. As in torch, the order and the sizes of the draws matter.
 * Source: ATen/native/cpu/DistributionTemplates.h and ATen/core/DistributionsHelper.h.
 */
export class Generator {
  private readonly engine: MersenneTwister;
  private spare: number | undefined;

  /** @param seed an integer; like torch, uses only its lowest 32 bits */
  constructor(readonly seed: number) {
    if (!Number.isSafeInteger(seed)) throw new RequestError(`The seed must be an integer, but is ${seed}.`);
    this.engine = new MersenneTwister(seed);
  }

  /** The next `size` values of the standard normal distribution. */
  randn(size: number): Float32Array {
    return size < block ? this.fewNormals(size) : this.manyNormals(size);
  }

  /**
   * Fewer than 16: one by one in double precision; the second value of a pair is kept for the next
   * draw, whatever its size.
   */
  private fewNormals(size: number): Float32Array {
    const values = new Float32Array(size);
    for (let i = 0; i < size; i++) {
      if (this.spare !== undefined) {
        values[i] = this.spare;
        this.spare = undefined;
      } else {
        const angle = 2 * Math.PI * this.uniform53();
        const radius = Math.sqrt(-2 * Math.log1p(-this.uniform53()));
        values[i] = radius * Math.cos(angle);
        this.spare = radius * Math.sin(angle);
      }
    }
    return values;
  }

  /**
   * 16 or more: uniform values first, transformed in blocks of 16; a tail shorter than a block draws
   * the last 16 values again.
   */
  private manyNormals(size: number): Float32Array {
    const values = new Float32Array(size);
    this.fillUniform24(values, 0);
    const whole = size - (size % block);
    for (let start = 0; start < whole; start += block) boxMuller(values, start);
    if (whole < size) {
      this.fillUniform24(values, size - block);
      boxMuller(values, size - block);
    }
    return values;
  }

  /** Uniform in [0, 1) with the 24 bits of a float32. */
  private fillUniform24(values: Float32Array, start: number): void {
    for (let i = start; i < values.length; i++) values[i] = (this.engine.next() & 0xffffff) * 2 ** -24;
  }

  /** Uniform in [0, 1) with the 53 bits of a double: 21 of the first word, 32 of the second. */
  private uniform53(): number {
    const high = this.engine.next() & 0x1fffff;
    return (high * 2 ** 32 + this.engine.next()) * 2 ** -53;
  }
}

/** Transforms 16 uniform values into normal ones: value i and value i + 8 are a pair. */
function boxMuller(values: Float32Array, start: number): void {
  for (let i = start; i < start + half; i++) {
    const radius = Math.sqrt(-2 * Math.log(1 - values[i]));
    // torch rounds the angle to float32, which is visible at 1e-6.
    const angle = Math.fround(twoPi * values[i + half]);
    values[i] = radius * Math.cos(angle);
    values[i + half] = radius * Math.sin(angle);
  }
}

/**
 * The 32-bit Mersenne Twister MT19937, seeded as C++ and torch seed it.
 * Source: Matsumoto and Nishimura, "Mersenne Twister" (1998), with the initialisation of 2002.
 */
export class MersenneTwister {
  private readonly state = new Uint32Array(stateSize);
  private position = stateSize;

  /** @param seed any integer; its lowest 32 bits are used */
  constructor(seed: number) {
    const { state } = this;
    state[0] = seed;
    for (let i = 1; i < stateSize; i++) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  }

  /** The next 32 random bits, 0 to 2^32 - 1. */
  next(): number {
    if (this.position === stateSize) this.twist();
    let word = this.state[this.position++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  }

  /** The next number from 0 to below 1, of 32 random bits. */
  uniform(): number {
    return this.next() / 2 ** 32;
  }

  private twist(): void {
    const { state } = this;
    for (let i = 0; i < stateSize; i++) {
      const mixed = (state[i] & 0x80000000) | (state[(i + 1) % stateSize] & 0x7fffffff);
      state[i] = state[(i + stateMiddle) % stateSize] ^ (mixed >>> 1) ^ (mixed & 1 ? 0x9908b0df : 0);
    }
    this.position = 0;
  }
}
