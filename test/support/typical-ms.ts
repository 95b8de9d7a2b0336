/** Median milliseconds of consecutive calls, so that a single stall changes nothing. */
export async function typicalMs(calls: number, call: () => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (let n = 0; n < calls; n++) {
    const startedAt = performance.now();
    await call();
    took.push(performance.now() - startedAt);
  }
  return took.sort((a, b) => a - b)[Math.floor(calls / 2)];
}
