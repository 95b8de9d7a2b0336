import { defaultTrainingSteps } from './limits';

describe(defaultTrainingSteps.name, () => {
  it.each([
    [4, 500],
    [12, 1200],
    [100, 3000],
  ])('gives %i pictures %i steps', (pictures, steps) => {
    expect(defaultTrainingSteps(pictures)).toBe(steps);
  });
});
