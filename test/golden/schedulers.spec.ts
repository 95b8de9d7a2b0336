import { Generator } from '../../libs/diffusion/src/random/generator';
import { createScheduler } from '../../libs/diffusion/src/schedulers';
import { computeEmpiricalMu } from '../../libs/diffusion/src/schedulers/flow-sigmas';
import type { SchedulerJson } from '../../libs/diffusion/src/schedulers/scheduler-config';
import { largestDifference, loadGolden, loadGoldenTable, recordGolden } from '../support/golden';

/** Relative to a sample's largest value; torch rounds to float32 after every operation, we once or twice per step. */
const tolerance = 1e-5;
/**
 * Fractional timesteps differ in the last bits where torch and we compute logarithms and powers in another order; at
 * the end of an ancestral run they follow from the difference of two squares that are equal but for the last bits.
 */
const timestepTolerance = { ordinary: 2e-4, ancestral: 1e-2 };
/**
 * Samples of two classes differ more. The Brownian motion runs over noise levels rounded to six decimals: where torch's
 * exponential differs in the last bit, the motion is asked for at a time 1e-6 away.
 */
const tolerances: Record<string, number> = {
  DPMSolverSDEScheduler: 2e-3,
  KDPM2AncestralDiscreteScheduler: 5e-5,
};

interface Run {
  key: string;
  name: string;
  class: string;
  config: SchedulerJson;
  prediction_type: string;
  steps: number;
  eta: number | null;
  init_noise_sigma: number;
  noise_seed: number | null;
}

/** Made by scripts/goldens/schedulers.py. */
const files = ['schedulers', 'schedulers-further'].map((file) => ({
  exactTimesteps: file === 'schedulers',
  golden: loadGolden(file),
  // Noise that eta adds to DDIM and TCD cannot be asked for.
  runs: loadGoldenTable<Run[]>(file).filter(({ eta }) => !eta),
}));
const names = files.flatMap(({ runs, ...file }) =>
  [...new Set(runs.map((run) => run.name))].map((name) => ({ name, runs, ...file })),
);

describe.each(names)('$name', ({ name, golden, runs, exactTimesteps }) => {
  const cases = runs.filter((run) => run.name === name);
  const allowed = tolerances[cases[0].class] ?? tolerance;
  let worst = 0;

  afterAll(() => recordGolden(`scheduler ${name}`, cases.length, worst, allowed));

  it.each(cases)('steps as diffusers does with $prediction_type in $steps steps', (run) => {
    const scheduler = createScheduler(undefined, {
      ...run.config,
      _class_name: run.class,
      prediction_type: run.prediction_type,
    });
    const generator = run.noise_seed === null ? undefined : new Generator(run.noise_seed);
    const outputs = golden.float32(`${run.key}.model_output`);
    const samples = golden.float32(`${run.key}.prev_sample`);

    scheduler.setTimesteps(run.steps);
    const timesteps = golden.float64(`${run.key}.timesteps`);
    if (exactTimesteps) expect([...scheduler.timesteps]).toEqual([...timesteps]);
    const difference = largestDifference(scheduler.timesteps, timesteps);
    const kind = run.class === 'KDPM2AncestralDiscreteScheduler' ? 'ancestral' : 'ordinary';
    expect(difference).toBeLessThanOrEqual(timestepTolerance[kind]);
    expect(scheduler.initNoiseSigma).toBeCloseTo(run.init_noise_sigma, 6);

    let sample = golden.float32(`${run.key}.start`);
    const size = sample.length;
    scheduler.timesteps.forEach((timestep, i) => {
      const output = outputs.slice(i * size, (i + 1) * size);
      scheduler.scaleModelInput(sample, timestep);
      sample = scheduler.step(output, timestep, sample, generator);
      const expected = samples.subarray(i * size, (i + 1) * size);
      const largest = expected.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
      const error = largestDifference(sample, expected) / (Number.isFinite(largest) ? largest : 1);
      worst = Math.max(worst, error);
      expect(error).toBeLessThanOrEqual(allowed);
    });
  });
});

interface FlowRun extends Pick<Run, 'key' | 'name' | 'class' | 'config' | 'steps' | 'noise_seed'> {
  rule: 'line' | 'flux2' | null;
  tokens: number;
  begin: number;
}

const flowRuns = loadGoldenTable<FlowRun[]>('schedulers-flow');
const flowGolden = loadGolden('schedulers-flow');

describe.each([...new Set(flowRuns.map(({ name }) => name))])('%s', (name) => {
  const cases = flowRuns.filter((run) => run.name === name);
  let worst = 0;
  const expectClose = (actual: Float32Array, expected: Float32Array) => {
    const error = relativeError(actual, expected);
    worst = Math.max(worst, error);
    expect(error).toBeLessThanOrEqual(tolerance);
  };

  afterAll(() => recordGolden(`scheduler ${name}`, cases.length, worst, tolerance));

  it.each(cases)('steps as diffusers does in $steps steps for $tokens tokens from step $begin', (run) => {
    const scheduler = createScheduler(undefined, { ...run.config, _class_name: run.class });
    const { tokens, rule } = run;
    scheduler.setTimesteps(run.steps, { tokens, ...(rule === 'flux2' && { muOf: computeEmpiricalMu }) });
    const expected = flowGolden.float64(`${run.key}.timesteps`);
    expect(relativeError(scheduler.timesteps, expected)).toBeLessThanOrEqual(1e-6);

    scheduler.beginAt(run.begin);
    const [image, noise, start] = ['image', 'noise', 'start'].map((each) => flowGolden.float32(`${run.key}.${each}`));
    if (run.begin > 0) expectClose(scheduler.addNoise(image, noise), start);
    const generator = run.noise_seed === null ? undefined : new Generator(run.noise_seed);
    const ofCall = (array: string, call: number) =>
      flowGolden.float32(`${run.key}.${array}`).slice(call * start.length, (call + 1) * start.length);
    let sample = start;
    const timesteps = scheduler.timesteps.subarray(scheduler.firstCall);
    for (const [call, timestep] of timesteps.entries()) {
      sample = scheduler.step(ofCall('model_output', call), timestep, sample, generator);
      expectClose(sample, ofCall('prev_sample', call));
      if (call + 1 < timesteps.length) expectClose(scheduler.addNoise(image, noise), ofCall('noisy', call));
    }
  });
});

/** Relative to the largest value. */
function relativeError(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  return largestDifference(actual, expected) / Array.from(expected, Math.abs).reduce((a, b) => Math.max(a, b));
}
