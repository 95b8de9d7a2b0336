import { trainingSettings } from '@app/diffusion';
import { defaultTrainingSteps } from '@app/domain';

describe('The usual number of steps of a training', () => {
  it.each([4, 5, 17, 30, 31, 100])('is that of the library for %i pictures too', (pictures) => {
    const { steps } = trainingSettings({ nativeSize: 512, defaults: {} }, pictures, {});
    expect(defaultTrainingSteps(pictures)).toBe(steps);
  });
});
