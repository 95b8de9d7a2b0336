/**
 * Seed of the i-th picture, as `seedOf` of `@app/domain`, whose entities the engine's thread does not load:
 * `seed.spec.ts` compares the two.
 */
export function seedOf(seed: number, index: number): number {
  return (seed + index) % 2 ** 32;
}
