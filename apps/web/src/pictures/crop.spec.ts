import { cropOf } from './crop';

const photo = { width: 400, height: 300 };

describe('what is left of a picture', () => {
  it('is its middle, as high as it is, where the shape is narrower', () => {
    expect(cropOf(photo, 1)).toEqual({ left: 12.5, top: 0, width: 75, height: 100 });
    expect(cropOf(photo, 2 / 3)).toEqual({ left: 25, top: 0, width: 50, height: 100 });
  });

  it('is its middle, as wide as it is, where the shape is wider', () => {
    const { left, top, width, height } = cropOf(photo, 3 / 2);
    expect([left, width]).toEqual([0, 100]);
    expect(top).toBeCloseTo(50 / 9);
    expect(height).toBeCloseTo(800 / 9);
  });

  it('is all of it where it has the shape', () => {
    expect(cropOf({ width: 512, height: 512 }, 1)).toEqual({ left: 0, top: 0, width: 100, height: 100 });
  });
});
