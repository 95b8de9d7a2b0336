/** The middle of some measurements; between the two middle ones where their number is even. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which this share (0 to 1) of the measurements lies, between two of them where none lies there. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const [below, above] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return below + (above - below) * (place - Math.floor(place));
}

/** Something to measure, once a round; round 0 warms up, if there is one. */
type Side = (round: number) => Promise<unknown>;

/**
 * Measures each side once a round, in the opposite order every other round, so that a machine that slows
 * down affects all of them.
 * @param options whether to begin with a round 0
 * @returns what each side gave in each round, without round 0
 */
export async function interleave<S extends Record<string, Side>>(
  sides: S,
  rounds: number,
  { warmUp = true } = {},
): Promise<{ [K in keyof S]: Awaited<ReturnType<S[K]>>[] }> {
  const names = Object.keys(sides);
  const results: Record<string, unknown[]> = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = warmUp ? 0 : 1; round <= rounds; round++)
    for (const name of round % 2 === 0 ? names : [...names].reverse()) {
      const result = await sides[name](round);
      if (round > 0) results[name].push(result);
    }
  return results as { [K in keyof S]: Awaited<ReturnType<S[K]>>[] };
}

/** What some work takes, in milliseconds. */
export async function msOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
