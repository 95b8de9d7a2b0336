import { continued, maskAround, placeIn } from './outpainted';

const size = { width: 6, height: 4 };
const picture = { width: 2, height: 3 };

describe('A picture in a larger one', () => {
  it('stands in its middle, or where it is to', () => {
    expect(placeIn(size, picture, true)).toEqual({ x: 2, y: 0 });
    expect(placeIn(size, picture, { x: 4, y: 1 })).toEqual({ x: 4, y: 1 });
  });

  it.each([
    [{ width: 7, height: 1 }, true, /has 7 x 1 pixels, .* smaller than what is drawn, 6 x 4/],
    [size, true, /ask for more, or send a smaller one/],
    [picture, { x: 5, y: 0 }, /at most 4 from the left and 1 from the top, not 5 and 0/],
  ] as const)('is refused where it has no place: %j, %j', (own, asked, message) => {
    expect(() => placeIn(size, own, asked)).toThrow(message);
  });

  it('stays as it is, its edge goes on around it, and the mask is what is around', () => {
    const data = Uint8Array.from({ length: 18 }, (_, i) => Math.floor(i / 3));
    const larger = continued({ ...picture, data }, size, { x: 2, y: 0 });
    const rows = (values: Uint8Array, step: number) =>
      Array.from({ length: 4 }, (_, y) => Array.from({ length: 6 }, (__, x) => values[(y * 6 + x) * step]));
    expect(rows(larger.data, 3)).toEqual([
      [0, 0, 0, 1, 1, 1],
      [2, 2, 2, 3, 3, 3],
      [4, 4, 4, 5, 5, 5],
      [4, 4, 4, 5, 5, 5],
    ]);
    const around = rows(maskAround(size, picture, { x: 2, y: 0 }).data, 1);
    expect(around.map((row) => row.map((value) => value / 255).join(''))).toEqual([
      ...['110011', '110011', '110011', '111111'],
    ]);
  });
});
