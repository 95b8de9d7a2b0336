import { bytesPerImage, planBatches } from './batch-plan';

describe(planBatches.name, () => {
  it.each([
    [1, 8, [1]],
    [3, 8, [2, 1]],
    [7, 8, [4, 2, 1]],
    [8, 8, [8]],
    [8, 3, [2, 2, 2, 2]],
    [5, 1, [1, 1, 1, 1, 1]],
  ])('draws %i pictures with at most %i at once as %j', (count, largest, batches) => {
    expect(planBatches(count, largest)).toEqual(batches);
  });

  it('draws one by one even if not even one seems to fit', () => {
    expect(planBatches(2, 0)).toEqual([1, 1]);
  });
});

describe(bytesPerImage.name, () => {
  const float32 = { textEncoder: 'float32', unet: 'float32', vaeDecoder: 'float32' } as const;
  const square = { width: 512, height: 512 };

  it('estimates gigabytes for a scale factor of 8 and megabytes for 32', () => {
    const large = bytesPerImage({ vaeScaleFactor: 8, dtypes: float32 }, square);
    const small = bytesPerImage({ vaeScaleFactor: 32, dtypes: float32 }, square);
    expect(large / 2 ** 30).toBeGreaterThan(1);
    expect(large / 2 ** 30).toBeLessThan(4);
    expect(small / 2 ** 20).toBeLessThan(64);
  });

  it('halves with float16', () => {
    const half = { ...float32, unet: 'float16' } as const;
    expect(bytesPerImage({ vaeScaleFactor: 8, dtypes: half }, square)).toBe(
      bytesPerImage({ vaeScaleFactor: 8, dtypes: float32 }, square) / 2,
    );
  });
});
