import { cannyEdges } from './canny-edges';

const edge = 8;
/** A picture of this value at a place. */
const picture = (valueAt: (x: number, y: number) => number) => {
  const data = Uint8Array.from({ length: edge * edge * 3 }, (_, i) => {
    const at = Math.floor(i / 3);
    return valueAt(at % edge, Math.floor(at / edge));
  });
  return { width: edge, height: edge, data };
};
/** Rows of its first channel, with # for white. */
const drawn = ({ data }: { data: Uint8Array }): string[] =>
  Array.from({ length: edge }, (_, y) =>
    Array.from({ length: edge }, (_, x) => (data[(y * edge + x) * 3] === 255 ? '#' : '.')).join(''),
  );

describe(cannyEdges.name, () => {
  it('finds a line of one pixel where two areas meet', () => {
    const upright = drawn(cannyEdges(picture((x) => (x < 4 ? 0 : 255))));
    expect(new Set(upright)).toEqual(new Set(['...#....']));
    const level = drawn(cannyEdges(picture((_, y) => (y < 4 ? 0 : 255))));
    expect(level.filter((row) => row.includes('#'))).toEqual(['########']);
  });

  it('finds nothing in a flat picture or a faint step', () => {
    for (const step of [0, 20]) {
      const rows = drawn(cannyEdges(picture((x) => (x < 4 ? 100 : 100 + step))));
      expect(rows.join('')).not.toContain('#');
    }
  });

  it('keeps a weak edge only where it goes on as a strong one', () => {
    const weak = (x: number): number => (x < 4 ? 100 : 140);
    expect(drawn(cannyEdges(picture(weak))).join('')).not.toContain('#');
    const both = drawn(cannyEdges(picture((x, y) => (y < 4 ? weak(x) : x < 4 ? 0 : 255))));
    expect(both[1]).toContain('#');
  });
});
