import { cropOf, nearestAspect } from './crop';

const photo = { width: 400, height: 300 };

describe('what is left of a picture', () => {
  it('is its middle, as high as it is, where the shape is narrower', () => {
    expect(cropOf(photo, 'square')).toEqual({ left: 12.5, top: 0, width: 75, height: 100 });
    expect(cropOf(photo, 'portrait')).toEqual({ left: 25, top: 0, width: 50, height: 100 });
  });

  it('is its middle, as wide as it is, where the shape is wider', () => {
    const { left, top, width, height } = cropOf(photo, 'landscape');
    expect([left, width]).toEqual([0, 100]);
    expect(top).toBeCloseTo(50 / 9);
    expect(height).toBeCloseTo(800 / 9);
  });

  it('is all of it where it has the shape', () => {
    expect(cropOf({ width: 512, height: 512 }, 'square')).toEqual({ left: 0, top: 0, width: 100, height: 100 });
  });
});

it.each([
  [1000, 1000, 'square'],
  [1200, 1000, 'square'],
  [1300, 1000, 'landscape'],
  [4000, 10, 'landscape'],
  [3000, 4000, 'portrait'],
  [1, 30_000, 'portrait'],
] as const)('a picture of %i x %i pixels loses least as %s', (width, height, aspect) => {
  expect(nearestAspect({ width, height })).toBe(aspect);
});
