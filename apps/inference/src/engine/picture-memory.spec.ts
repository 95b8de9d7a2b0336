import { bytesPerRow } from './picture-memory';

describe(bytesPerRow.name, () => {
  const float32 = { textEncoder: 'float32', unet: 'float32', vaeDecoder: 'float32' } as const;
  const square = { width: 512, height: 512 };

  it('expects gigabytes of a factor of 8 and megabytes of a factor of 32', () => {
    const large = bytesPerRow({ vaeScaleFactor: 8, dtypes: float32 }, square);
    const small = bytesPerRow({ vaeScaleFactor: 32, dtypes: float32 }, square);
    expect(large / 2 ** 30).toBeGreaterThan(0.5);
    expect(large / 2 ** 30).toBeLessThan(2);
    expect(small / 2 ** 20).toBeLessThan(32);
  });

  it('halves with float16', () => {
    const half = { ...float32, unet: 'float16' } as const;
    expect(bytesPerRow({ vaeScaleFactor: 8, dtypes: half }, square)).toBe(
      bytesPerRow({ vaeScaleFactor: 8, dtypes: float32 }, square) / 2,
    );
  });
});
