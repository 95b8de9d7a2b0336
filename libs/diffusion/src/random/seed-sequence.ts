const wordSize = 2 ** 32;

/**
 * numpy's `SeedSequence(entropy, spawn_key=spawnKey, pool_size=poolSize).generate_state(count)`: seeds that are
 * independent for every spawn key.
 * Source: numpy/random/bit_generator.pyx, after M. E. O'Neill, "Developing a seed_seq Alternative" (2015).
 * @param entropy an integer from 0 to 2^53 - 1, as are those of the spawn key
 */
export function seedSequence(entropy: number, spawnKey: readonly number[], poolSize: number, count: number): number[] {
  const own = words(entropy);
  const padding = spawnKey.length > 0 ? new Array<number>(Math.max(0, poolSize - own.length)).fill(0) : [];
  const input = [...own, ...padding, ...spawnKey.flatMap(words)];

  // 1. The pool takes one word for each place, and then every place is mixed into every other.
  const hash = hasher(0x43b0d7e5, 0x931e8875);
  const pool = Array.from({ length: poolSize }, (_, i) => hash(input[i] ?? 0));
  for (let source = 0; source < poolSize; source++)
    for (let target = 0; target < poolSize; target++)
      if (source !== target) pool[target] = mix(pool[target], hash(pool[source]));

  // 2. What is left of the input is mixed into every place.
  for (const word of input.slice(poolSize))
    for (let target = 0; target < poolSize; target++) pool[target] = mix(pool[target], hash(word));

  // 3. The state, from the pool again and again.
  const output = hasher(0x8b51f9dd, 0x58f38ded);
  return Array.from({ length: count }, (_, i) => output(pool[i % poolSize]) >>> 0);
}

/** The 32-bit words of an integer, the lowest first. */
function words(value: number): number[] {
  return value < wordSize ? [value] : [value % wordSize, Math.floor(value / wordSize)];
}

/** A hash whose constant changes with each call. */
function hasher(start: number, factor: number): (value: number) => number {
  let constant = start;
  return (value) => {
    const mixed = value ^ constant;
    constant = Math.imul(constant, factor);
    const product = Math.imul(mixed, constant);
    return product ^ (product >>> 16);
  };
}

function mix(x: number, y: number): number {
  const difference = Math.imul(0xca01f9dd, x) - Math.imul(0x4973f715, y);
  return difference ^ ((difference >>> 16) & 0xffff);
}
