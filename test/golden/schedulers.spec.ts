import { Generator } from '../../libs/diffusion/src/random';
import type { SchedulerJson } from '../../libs/diffusion/src/schedulers';
import { createScheduler } from '../../libs/diffusion/src/schedulers';
import { largestDifference, loadGolden, loadGoldenTable, recordGolden } from '../support/golden';

/** Relative to a sample's largest value; torch rounds to float32 after every operation, we once or twice per step. */
const tolerance = 1e-5;

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

const golden = loadGolden('schedulers');
const runs = loadGoldenTable<Run[]>('schedulers');

describe.each([...new Set(runs.map((run) => run.name))])('%s', (name) => {
  const cases = runs.filter((run) => run.name === name);
  let worst = 0;

  afterAll(() => recordGolden(`scheduler ${name}`, cases.length, worst, tolerance));

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
    expect([...scheduler.timesteps]).toEqual([...golden.float64(`${run.key}.timesteps`)]);
    expect(scheduler.initNoiseSigma).toBeCloseTo(run.init_noise_sigma, 6);

    let sample = golden.float32(`${run.key}.start`);
    const size = sample.length;
    scheduler.timesteps.forEach((timestep, i) => {
      const output = outputs.slice(i * size, (i + 1) * size);
      scheduler.scaleModelInput(sample, timestep);
      sample = scheduler.step(output, timestep, sample, { generator, eta: run.eta ?? undefined });
      const expected = samples.subarray(i * size, (i + 1) * size);
      const largest = expected.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
      const error = largestDifference(sample, expected) / (Number.isFinite(largest) ? largest : 1);
      worst = Math.max(worst, error);
      expect(error).toBeLessThanOrEqual(tolerance);
    });
  });
});
