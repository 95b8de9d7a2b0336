const size = 624;
const middle = 397;

/**
 * The 32-bit Mersenne Twister MT19937, seeded as C++ and torch seed it.
 * Source: Matsumoto and Nishimura, "Mersenne Twister" (1998), with the initialisation of 2002.
 */
export class MersenneTwister {
  private readonly state = new Uint32Array(size);
  private position = size;

  /** @param seed any integer; its lowest 32 bits are used */
  constructor(seed: number) {
    const { state } = this;
    state[0] = seed;
    for (let i = 1; i < size; i++) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  }

  /** The next 32 random bits, 0 to 2^32 - 1. */
  next(): number {
    if (this.position === size) this.twist();
    let word = this.state[this.position++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  }

  private twist(): void {
    const { state } = this;
    for (let i = 0; i < size; i++) {
      const mixed = (state[i] & 0x80000000) | (state[(i + 1) % size] & 0x7fffffff);
      state[i] = state[(i + middle) % size] ^ (mixed >>> 1) ^ (mixed & 1 ? 0x9908b0df : 0);
    }
    this.position = 0;
  }
}
