import { rowsOfStep, rowsToJudge } from './batch';
import type { Example, Examples, PriorRow } from './examples';
import { type Noising, noisingOf } from './noise';
import { trainingSettings } from './settings';

const textOf = (value: number) => ({ inputs: { states: { dims: [4], values: new Float32Array(4).fill(value) } } });
const [text, noText] = [textOf(0), textOf(9)];
const example = (value: number, height: number, width: number, deviation?: number): Example => ({
  ...{ shape: [1, height, width], mean: new Float32Array(height * width).fill(value), text },
  ...(deviation !== undefined && { deviation: new Float32Array(height * width).fill(deviation) }),
});
const prior = (value: number, height: number, width: number): PriorRow => {
  const { shape, mean } = example(value, height, width);
  return { shape, sample: mean, target: mean, timestep: 500, text };
};
const model = { defaults: {}, denoiser: {} };
const noisingFor = (type: string): Noising => noisingOf({ ...model, schedulerJson: { prediction_type: type } });
const settings = trainingSettings({ nativeSize: 512, defaults: {} }, 4, { seed: 5, batch: 8 });
const examples: Examples = {
  ...{ shown: [example(1, 4, 8), example(2, 8, 4)], prior: [prior(3, 4, 8), prior(4, 8, 4)] },
  ...{ keptPrior: [], noText },
};

describe('What a step shows', () => {
  it('follows from the seed and the step, and from nothing else', () => {
    const rows = (seed: number, step: number) =>
      JSON.stringify(rowsOfStep(examples, noisingFor('epsilon'), { ...settings, seed }, step));
    expect(rows(5, 3)).toBe(rows(5, 3));
    expect(rows(5, 3)).not.toBe(rows(5, 4));
    expect(rows(5, 3)).not.toBe(rows(6, 3));
  });

  it('has one size, and over many steps every picture, time and text', () => {
    const seen = Array.from({ length: 60 }, (_, step) =>
      rowsOfStep(examples, noisingFor('sample'), { ...settings, captionDropout: 0.3 }, step),
    );
    for (const rows of seen) expect(new Set(rows.map(({ shape }) => shape.join())).size).toBe(1);
    const all = seen.flat();
    // The target of a model that predicts the sample is the picture.
    expect(new Set(all.map(({ target }) => target[0]))).toEqual(new Set([1, 2, 3, 4]));
    expect(all.filter((row) => row.text === noText).every(({ target }) => target[0] < 3)).toBe(true);
    expect(new Set(all.map((row) => row.text)).size).toBe(2);
    const times = all.map(({ timestep }) => timestep);
    expect([Math.min(...times) < 50, Math.max(...times) > 949]).toEqual([true, true]);
  });

  it('is a picture in noise, which an epsilon model is to find and a v model to find with the picture', () => {
    const [mean, noise] = [Float32Array.of(2, 2), Float32Array.of(1, -1)];
    const one: Example = { shape: [1, 1, 2], mean, text };
    const [epsilon, v] = ['epsilon', 'v_prediction'].map((type) => noisingFor(type).row(one, mean, noise, 0.5));
    expect(epsilon.target).toEqual(noise);
    // x = a z + s n, v = a n - s z, and so z = a x - s v, with a a + s s = 1.
    const sigma = (epsilon.sample[0] - epsilon.sample[1]) / 2;
    const signal = Math.sqrt(1 - sigma ** 2);
    for (const i of [0, 1]) expect(signal * v.sample[i] - sigma * v.target[i]).toBeCloseTo(2, 5);
  });

  it('is on the way from picture to noise with a flow model, at levels that are shifted as those of drawing', () => {
    const [mean, noise] = [Float32Array.of(2, 2), Float32Array.of(1, -1)];
    const one: Example = { shape: [1, 1, 2], mean, text };
    const schedulerJson = { _class_name: 'FlowMatchEulerDiscreteScheduler', shift: 3 };
    const dynamic = { ...schedulerJson, use_dynamic_shifting: true };
    const muOf = (tokens: number, steps: number) => Math.log(tokens * steps);
    const rowOf = (noising: Noising) => noising.row(one, mean, noise, 0.5, 5);
    const { sample, target, timestep, weight } = rowOf(noisingOf({ ...model, schedulerJson }));
    expect([timestep, weight]).toEqual([750, 1]);
    expect([[...sample], [...target]]).toEqual([
      [1.25, -0.25],
      [-1, -3],
    ]);
    // Two tokens, in four steps.
    const shifted = noisingOf({ ...model, defaults: { steps: 4 }, schedulerJson: dynamic, muOf });
    expect(rowOf(shifted).timestep).toBeCloseTo(8000 / 9, 3);
  });

  it('counts less where there is little noise, at most by the bound', () => {
    const one = example(1, 1, 2);
    const weights = (type: string, gamma: number) =>
      [0, 500, 999].map((time) => noisingFor(type).row(one, one.mean, one.mean, time / 1000, gamma).weight);
    expect(weights('epsilon', 0)).toEqual([1, 1, 1]);
    const [early, middle, late] = weights('epsilon', 5);
    expect(early).toBeLessThan(0.01);
    expect([middle, late]).toEqual([1, 1]);
    for (const weight of weights('sample', 5)) expect(weight).toBeLessThanOrEqual(5);
  });

  it('shares noise within a channel where an offset is asked for', () => {
    const meanOf = (offsetNoise: number) => {
      const wide = { ...examples, shown: [example(0, 32, 32)], prior: [] };
      const [row] = rowsOfStep(wide, noisingFor('epsilon'), { ...settings, offsetNoise }, 1);
      return row.target.reduce((sum, value) => sum + value, 0) / row.target.length;
    };
    expect(Math.abs(meanOf(0))).toBeLessThan(0.15);
    expect(Math.abs(meanOf(5))).toBeGreaterThan(0.3);
  });

  it('is judged at times that are spread evenly, with noise that is always the same', () => {
    const judged = () => rowsToJudge(example(1, 4, 4), noisingFor('epsilon'), 4);
    expect(judged().map(({ timestep }) => timestep)).toEqual([125, 375, 625, 875]);
    expect(JSON.stringify(judged())).toBe(JSON.stringify(judged()));
  });
});
