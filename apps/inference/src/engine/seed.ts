/** Seed of the i-th picture of a request: seeds are 32 bits and start over behind the largest. */
export function seedOf(seed: number, index: number): number {
  return (seed + index) % 2 ** 32;
}
