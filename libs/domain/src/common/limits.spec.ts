import { defaultTrainingSteps, seedOf } from './limits';

describe(seedOf.name, () => {
  it.each([
    [0, 0, 0],
    [7, 3, 10],
    [4_294_967_295, 0, 4_294_967_295],
    [4_294_967_295, 1, 0],
    [4_294_967_294, 7, 5],
  ])('gives of %i picture %i the seed %i', (seed, index, expected) => {
    expect(seedOf(seed, index)).toBe(expected);
  });
});

describe(defaultTrainingSteps.name, () => {
  it.each([
    [4, 500],
    [12, 1200],
    [100, 3000],
  ])('gives %i pictures %i steps', (pictures, steps) => {
    expect(defaultTrainingSteps(pictures)).toBe(steps);
  });
});
