import { Generator } from '../../libs/diffusion/src/random/generator';
import { largestDifference, loadGolden, loadGoldenTable, recordGolden } from '../support/golden';

/** Absolute; torch's vectorised sine, cosine and logarithm differ from Math's in the last bit of a float32. */
const tolerance = 1e-6;

interface Draws {
  name: string;
  seed: number;
  shape?: number[];
  draws?: number;
  sizes?: number[];
}

describe(Generator.name, () => {
  const golden = loadGolden('randn');
  const cases = loadGoldenTable<Draws[]>('randn');
  let worst = 0;

  afterAll(() => recordGolden('randn', cases.length, worst, tolerance));

  const equals = (actual: Float32Array, expected: Float32Array) => {
    const difference = largestDifference(actual, expected);
    worst = Math.max(worst, difference);
    expect(difference).toBeLessThanOrEqual(tolerance);
  };

  it.each(cases.filter(({ shape }) => shape))("draws torch's $name", ({ name, seed, shape, draws }) => {
    const generator = new Generator(seed);
    const size = shape!.reduce((a, b) => a * b, 1);
    const all = new Float32Array(size * draws!);
    for (let i = 0; i < draws!; i++) all.set(generator.randn(size), i * size);
    equals(all, golden.float32(name));
  });

  it.each(cases.filter(({ sizes }) => sizes))(
    'keeps its position between draws of mixed sizes',
    ({ name, seed, sizes }) => {
      const generator = new Generator(seed);
      sizes!.forEach((size, i) => equals(generator.randn(size), golden.float32(`${name}_${i}`)));
    },
  );
});
