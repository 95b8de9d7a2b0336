import { problemsOfSize, sizeDrawnFrom, sizeOfShape } from './sizes';

const of = (text: string) => {
  const [width, height] = text.split(/[:x]/).map(Number);
  return { width, height };
};
const text = ({ width, height }: { width: number; height: number }) => `${width}x${height}`;
const stable = { edge: 512, multiple: 8, maxPixels: 4 * 512 ** 2 };
const flux = { edge: 1024, multiple: 16, maxPixels: 4 * 1024 ** 2 };

describe('The sizes of a model', () => {
  it.each([
    [stable, '1:1', '512x512'],
    [stable, '16:9', '680x384'],
    [stable, '9:16', '384x680'],
    [stable, '4:1', '1024x256'],
    [flux, '16:9', '1360x768'],
    [flux, '21:9', '1568x672'],
    [flux, '4:3', '1184x880'],
    [flux, '1:4', '512x2048'],
    [flux, '10000:1', '2048x512'],
  ])('of %j and the shape %s: %s', (rules, shape, size) => {
    expect(text(sizeOfShape(rules, of(shape)))).toBe(size);
  });

  it('are within an edge of both the shape and the area, whatever the shape', () => {
    for (const rules of [stable, flux])
      for (let width = 1; width <= 64; width++)
        for (let height = Math.ceil(width / 4); height <= Math.min(64, 4 * width); height++) {
          const size = sizeOfShape(rules, { width, height });
          const [wide, high] = [rules.edge * Math.sqrt(width / height), rules.edge * Math.sqrt(height / width)];
          expect((size.width % rules.multiple) + (size.height % rules.multiple)).toBe(0);
          expect(Math.abs(size.width - wide)).toBeLessThanOrEqual(rules.multiple / 2);
          expect(Math.abs(size.height - high)).toBeLessThanOrEqual(rules.multiple / 2);
        }
  });

  it.each([
    ['its own where the model draws that', stable, '512x768', '512x768'],
    ['its own though no word has it', stable, '640x448', '640x448'],
    ['that of its shape where it is large', stable, '1024x768', '592x440'],
    ['that of its shape where it is small', stable, '256x256', '512x512'],
    ['that of its shape where its edges are no multiples', flux, '1000x1000', '1024x1024'],
    ['the steepest where it is steeper', stable, '1280x240', '1024x256'],
  ])('for a picture are %s', (_, rules, picture, size) => {
    expect(text(sizeDrawnFrom(rules, of(picture)))).toBe(size);
  });

  it('are told where another is asked for', () => {
    expect(problemsOfSize(stable, of('512x768'))).toEqual([]);
    expect(problemsOfSize(stable, of('500x333')).map(({ edge, problem }) => `${edge} ${problem}`)).toEqual([
      'width must be a multiple of 8 with this model, got 500; the nearest are 496 and 504',
      'height must be a multiple of 8 with this model, got 333; the nearest are 328 and 336',
    ]);
    expect(problemsOfSize(stable, of('2048x1024')).map(({ problem }) => problem)).toEqual([
      'and "height" make 2097152 pixels, and this model draws at most 1048576; of this shape that is 1448 x 720',
    ]);
    expect(problemsOfSize(flux, of('2048x2048'))).toEqual([]);
  });
});
