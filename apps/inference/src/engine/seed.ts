/** Seed of the i-th picture of a request: seeds have 32 bits and wrap around. */
export function seedOf(seed: number, index: number): number {
  return (seed + index) % 2 ** 32;
}
