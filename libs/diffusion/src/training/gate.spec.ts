import { driftOf, judge } from './gate';
import { rateOf } from './adam-w';
import { trainingSettings } from './settings';

describe('The gate of a training', () => {
  it.each([
    [{ lossAtStart: 0.4, loss: 0.2, drift: 0.1 }, undefined],
    [{ lossAtStart: 0.4, loss: 0.2 }, undefined],
    [{ lossAtStart: 0.4, loss: 0.41, drift: 0 }, 'The loss on a picture kept back is 0.410, and was 0.400 before.'],
    [{ lossAtStart: 0.4, loss: 0.2, drift: 0.9 }, /^What the base model draws for other words changed by 0\.900 of it/],
    [{ lossAtStart: 0.4, loss: NaN, drift: 0 }, 'The loss is no longer a number.'],
  ])('judges %j', (figures, reason) => {
    const result = judge(figures);
    expect(result).toMatchObject({ ...figures, passed: reason === undefined });
    if (reason !== undefined) expect(result.reason).toMatch(reason);
  });

  it('measures drift as a share of what the base says', () => {
    const base = [Float32Array.of(3, 0), Float32Array.of(0, 4)];
    expect(driftOf(base, base)).toBe(0);
    expect(driftOf(base, [Float32Array.of(3, 5), Float32Array.of(0, 4)])).toBe(1);
  });
});

describe('Settings of a training', () => {
  const model = { nativeSize: 1024, defaults: { training: { steps: 200, learning_rate: 0.01, batch: 4 } } };

  it('are what the caller says, then the model, then what is usual', () => {
    const settings = trainingSettings(model, 10, { batch: 2, rank: undefined });
    expect(settings).toMatchObject({ steps: 200, learningRate: 0.01, batch: 2, rank: 8, size: 512, minSnrGamma: 5 });
  });

  it('have 100 steps for each picture, from 500 to 3000', () => {
    const stepsOf = (pictures: number) => trainingSettings({ nativeSize: 512, defaults: {} }, pictures, {}).steps;
    expect([4, 12, 100].map(stepsOf)).toEqual([500, 1200, 3000]);
  });

  it('let the rate rise, and fall to a twentieth', () => {
    const settings = { learningRate: 1, warmupSteps: 10, steps: 1000 };
    const rates = [0, 9, 500, 999].map((step) => rateOf(step, settings));
    expect(rates.map((rate) => rate.toFixed(2))).toEqual(['0.10', '1.00', '0.53', '0.05']);
  });
});
