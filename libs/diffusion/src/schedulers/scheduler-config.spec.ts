import fc from 'fast-check';
import { createScheduler, schedulerNames } from '.';
import { parseSchedulerJson, readSchedulerConfig, SchedulerError } from './scheduler-config';

describe(readSchedulerConfig.name, () => {
  it("fills in common defaults, the class's defaults, and defaults for null", () => {
    const config = readSchedulerConfig(
      { beta_end: 0.012, steps_offset: null },
      { beta_start: 0.001, clip_sample: true },
    );
    expect(config).toMatchObject({
      betaStart: 0.001,
      betaEnd: 0.012,
      stepsOffset: 0,
      clipSample: true,
      clipSampleRange: 1,
      timestepSpacing: 'linspace',
    });
  });

  it('ignores parameters that the class does not have', () => {
    const config = readSchedulerConfig({ use_karras_sigmas: true, thresholding: true, clip_sample: 'no', x: 1 }, {});
    expect(config).toMatchObject({ useKarrasSigmas: false, clipSample: false });
  });

  it('bounds by the number of training timesteps only what the class has', () => {
    expect(readSchedulerConfig({ num_train_timesteps: 2 }, {}).originalInferenceSteps).toBe(50);
    expect(() => readSchedulerConfig({ num_train_timesteps: 2 }, { original_inference_steps: 50 })).toThrow(
      'original_inference_steps must be an integer from 1 to 2, but is 50.',
    );
  });

  it.each([
    [
      { beta_schedule: 'sigmoid' },
      'beta_schedule must be "linear" or "scaled_linear" or "squaredcos_cap_v2", but is "sigmoid".',
    ],
    [{ num_train_timesteps: 0 }, 'num_train_timesteps must be an integer from 2 to 10000, but is 0.'],
    [{ prediction_type: 'flow_prediction' }, 'The scheduler is not for flow matching.'],
    [{ beta_start: '0.1' }, 'beta_start must be a number from 1e-7 to 0.999, but is "0.1".'],
    [{ beta_start: 0 }, /beta_start must be/],
    [{ steps_offset: 1.5 }, /steps_offset must be an integer/],
    [{ use_flow_sigmas: true }, /^use_flow_sigmas and the prediction_type "flow_prediction" need one another/],
    [{ use_dynamic_shifting: true }, 'use_dynamic_shifting and shift_terminal need use_flow_sigmas.'],
    [{ trained_betas: [0.1] }, /trained_betas must be a list of 1000 numbers/],
    [{ use_karras_sigmas: true, use_exponential_sigmas: true }, /Only one of/],
    [{ sigma_min: 2, sigma_max: 1 }, 'sigma_min (2) must be less than sigma_max (1).'],
    [{ solver_p: {} }, 'solver_p is not supported.'],
    [{ disable_corrector: 3 }, /disable_corrector must be a list/],
    [{ lower_order_final: 1 }, 'lower_order_final must be true or false, but is 1.'],
  ])('refuses %j', (json, sentence) => {
    const known = Object.fromEntries(Object.entries(json).map(([key]) => [key, allParameters[key]]));
    expect(() => readSchedulerConfig(json, known)).toThrow(SchedulerError);
    expect(() => readSchedulerConfig(json, known)).toThrow(sentence);
  });

  it('accepts any configuration or rejects it in one sentence', () => {
    const values = fc.oneof(
      fc.jsonValue(),
      fc.boolean(),
      fc.integer({ min: -3, max: 2000 }),
      fc.double(),
      fc.constant(null),
    );
    const keys = fc.constantFrom(
      ...Object.keys(allParameters),
      'num_train_timesteps',
      'beta_schedule',
      'trained_betas',
    );
    fc.assert(
      fc.property(fc.constantFrom(...schedulerNames), fc.dictionary(keys, values), (name, json) => {
        try {
          const scheduler = createScheduler(name, json);
          scheduler.setTimesteps(1);
          expect(scheduler.timesteps.length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(SchedulerError);
          expect((error as Error).message).toMatch(/^.+\.$/);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

/** Keys of several classes, each with an accepted value. */
const allParameters: Record<string, unknown> = {
  beta_start: 0.001,
  beta_end: 0.02,
  prediction_type: 'epsilon',
  timestep_spacing: 'linspace',
  steps_offset: 0,
  use_flow_sigmas: false,
  use_dynamic_shifting: false,
  use_karras_sigmas: false,
  use_exponential_sigmas: false,
  sigma_min: null,
  sigma_max: null,
  final_sigmas_type: 'zero',
  solver_p: null,
  solver_order: 2,
  solver_type: 'midpoint',
  algorithm_type: 'dpmsolver++',
  lambda_min_clipped: -Infinity,
  disable_corrector: [],
  lower_order_final: true,
  clip_sample: false,
  variance_type: 'fixed_small',
  original_inference_steps: 50,
  timestep_scaling: 10,
};

describe(parseSchedulerJson.name, () => {
  it("reads Python's infinities and NaN, and leaves strings alone", () => {
    const json = parseSchedulerJson(
      '{"lambda_min_clipped": -Infinity, "a": Infinity, "b": NaN, "c": "-Infinity \\" NaN"}',
    );
    expect(json).toEqual({ lambda_min_clipped: -Infinity, a: Infinity, b: null, c: '-Infinity " NaN' });
  });

  it.each(['', '[]', 'null', '1', '{"a":', '{"a": constructor}'])('refuses %j', (text) => {
    expect(() => parseSchedulerJson(text)).toThrow(SchedulerError);
  });
});
