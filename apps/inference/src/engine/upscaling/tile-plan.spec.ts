import { planTiles } from './tile-plan';

describe(planTiles.name, () => {
  it.each([
    [512, 128, 4],
    [768, 128, 4],
    [517, 64, 2],
    [100, 16, 2],
    [128, 128, 4],
    [40, 128, 4],
  ])('gives every pixel of %i, in tiles of %i enlarged %i times, a total weight of 1', (length, tile, scale) => {
    const sums = new Float64Array(length * scale);
    for (const { enlargedStart, weights } of planTiles(length, tile, scale))
      weights.forEach((weight, x) => (sums[enlargedStart + x] += weight));
    for (const sum of sums) expect(sum).toBeCloseTo(1, 5);
  });

  it("gives a tile's border inside the picture no weight, and no pixel a negative one", () => {
    const spans = planTiles(512, 128, 1);
    expect(spans.length).toBeGreaterThan(3);
    for (const [i, { start, weights }] of spans.entries()) {
      expect(Math.min(...weights)).toBeGreaterThanOrEqual(0);
      expect(start + 128).toBeLessThanOrEqual(512);
      if (i > 0) expect(Math.max(...weights.subarray(0, 7))).toBe(0);
      if (i + 1 < spans.length) expect(Math.max(...weights.subarray(-7))).toBe(0);
    }
  });
});
