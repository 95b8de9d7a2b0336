import fc from 'fast-check';
import { Generator } from '../random/generator';
import { createScheduler, schedulerNameOf, schedulerNames, schedulerNamesFor } from '.';
import { calculateShift, computeEmpiricalMu } from './flow-sigmas';
import type { Scheduler } from './scheduler';
import { readSchedulerConfig, SchedulerError, type SchedulerJson } from './scheduler-config';

const json: SchedulerJson = {
  _class_name: 'PNDMScheduler',
  beta_start: 0.00085,
  beta_end: 0.012,
  beta_schedule: 'scaled_linear',
  skip_prk_steps: true,
  steps_offset: 1,
  clip_sample: false,
};

/** A whole run with a model that returns pseudo-random noise; returns the last sample. */
function run(scheduler: Scheduler, steps: number, size: number): Float32Array {
  const generator = new Generator(1);
  const model = new Generator(2);
  scheduler.setTimesteps(steps);
  let sample: Float32Array = generator.randn(size).map((value) => value * scheduler.initNoiseSigma);
  const lengths = new Set<number>();
  for (const timestep of scheduler.timesteps) {
    lengths.add(scheduler.scaleModelInput(sample, timestep).length);
    sample = scheduler.step(model.randn(size), timestep, sample, generator);
  }
  expect([...lengths]).toEqual([size]);
  return sample;
}

/** Names whose scheduler draws noise, so that `step` needs a generator. */
const noisySchedulerNames: ReadonlySet<string> = new Set([
  'ddpm',
  'euler_a',
  'dpmpp_2m_sde_karras',
  'lcm',
  'dpmpp_sde',
  'dpm2_a',
]);

/** As Z-Image's. */
const flowJson: SchedulerJson = {
  _class_name: 'FlowMatchEulerDiscreteScheduler',
  num_train_timesteps: 1000,
  use_dynamic_shifting: false,
  shift: 3,
};
const solverJson: SchedulerJson = {
  _class_name: 'DPMSolverMultistepScheduler',
  use_flow_sigmas: true,
  prediction_type: 'flow_prediction',
  flow_shift: 3,
};
const flowNames = schedulerNamesFor(flowJson);

const twofold = ['heun', 'dpm2', 'dpm2_a', 'dpmpp_sde'];
const evaluations = (name: string, steps: number) =>
  twofold.includes(name) ? 2 * steps - 1 : name === 'pndm' && steps > 1 ? steps + 1 : steps;

const all = [
  ...schedulerNames.map((name) => [name, json] as const),
  ...flowNames.map((name) => [name, flowJson] as const),
];

describe('every scheduler', () => {
  it('stays finite and gives the U-Net falling timesteps for any steps, spacing and prediction type', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...schedulerNames),
        fc.integer({ min: 1, max: 50 }),
        fc.constantFrom('epsilon', 'v_prediction'),
        fc.constantFrom('leading', 'trailing', 'linspace'),
        fc.constantFrom(1, 15, 64),
        (name, steps, prediction_type, timestep_spacing, size) => {
          const scheduler = createScheduler(name, { ...json, prediction_type, timestep_spacing });
          expect(run(scheduler, steps, size).every(Number.isFinite)).toBe(true);
          const { timesteps } = scheduler;
          expect(timesteps).toHaveLength(evaluations(name, steps));
          // The middle of the last ancestral step may be rounded to just before its end.
          expect(timesteps.every((t, i) => t >= 0 && t < 1000 && (i === 0 || t <= timesteps[i - 1] + 1e-3))).toBe(true);
        },
      ),
      { numRuns: 400 },
    );
  });

  it.each(schedulerNames.filter((name) => name !== 'pndm' && name !== 'lms' && name !== 'heun'))(
    '%s stays finite with zero terminal SNR',
    (name) => {
      const zero = {
        ...json,
        prediction_type: 'v_prediction',
        rescale_betas_zero_snr: true,
        timestep_spacing: 'trailing',
      };
      expect(run(createScheduler(name, zero), 10, 32).every(Number.isFinite)).toBe(true);
    },
  );

  it.each(all)('%s draws the same after another setTimesteps, and does not modify its inputs', (name, config) => {
    const scheduler = createScheduler(name, config);
    const first = run(scheduler, 6, 32);
    expect(run(scheduler, 6, 32)).toEqual(first);

    scheduler.setTimesteps(2);
    const [output, sample] = [new Generator(3).randn(32), new Generator(4).randn(32)];
    const before = [output.slice(), sample.slice()];
    scheduler.step(output, scheduler.timesteps[0], sample, new Generator(5));
    expect([output, sample]).toEqual(before);
  });

  it.each(all)('%s lets the caller reuse the array of the model output', (name, config) => {
    const reusing = createScheduler(name, config);
    const fresh = createScheduler(name, config);
    const shared = new Float32Array(32);
    const last = [reusing, fresh].map((scheduler) => {
      const generator = new Generator(1);
      const model = new Generator(2);
      scheduler.setTimesteps(6);
      let sample = generator.randn(32);
      for (const timestep of scheduler.timesteps) {
        let output = model.randn(32);
        if (scheduler === reusing) {
          shared.set(output);
          output = shared;
        }
        sample = scheduler.step(output, timestep, sample, generator);
      }
      return sample;
    });
    expect(last[0]).toEqual(last[1]);
  });

  it.each(schedulerNames)('%s needs a generator if and only if it adds noise', (name) => {
    const scheduler = createScheduler(name, json);
    scheduler.setTimesteps(4);
    const step = () => {
      for (const timestep of scheduler.timesteps.subarray(0, 2))
        scheduler.step(new Float32Array(16), timestep, new Float32Array(16));
    };
    if (noisySchedulerNames.has(name)) expect(step).toThrow('needs a generator');
    else expect(step).not.toThrow();
  });

  it('rejects a step out of order, a step too many and arrays of different lengths', () => {
    const scheduler = createScheduler('euler', json);
    const step = (timestep: number, size = 4) => scheduler.step(new Float32Array(size), timestep, new Float32Array(4));
    expect(() => step(999)).toThrow('The run has 0 steps');
    scheduler.setTimesteps(2);
    expect(() => step(0)).toThrow('The next timestep is 999, not 0.');
    expect(() => step(999, 5)).toThrow('5 values for a sample of 4');
    step(999);
    step(0);
    expect(() => step(0)).toThrow('no further one');
  });

  it.each([0, -1, 1.5, NaN, 1001])('rejects %d steps', (steps) => {
    expect(() => createScheduler('ddim', json).setTimesteps(steps)).toThrow(SchedulerError);
  });
});

describe(createScheduler.name, () => {
  it("is the model's own without a name", () => {
    expect(createScheduler(undefined, json).constructor.name).toBe('PndmScheduler');
  });

  it('starts PNDM with Runge-Kutta steps unless the model skips them, or there are too few', () => {
    const scheduler = createScheduler('pndm', { ...json, skip_prk_steps: false });
    expect(run(scheduler, 20, 32).every(Number.isFinite)).toBe(true);
    expect(scheduler.timesteps).toHaveLength(29);
    expect([...scheduler.timesteps.subarray(0, 5)]).toEqual([951, 926, 926, 901, 901]);
    scheduler.setTimesteps(3);
    expect([...scheduler.timesteps]).toEqual([667, 334, 334, 1]);
  });

  it("gives a DPM solver the properties in its name, whatever the model's configuration says", () => {
    const own = {
      ...json,
      _class_name: 'DPMSolverMultistepScheduler',
      use_karras_sigmas: true,
      algorithm_type: 'sde-dpmsolver++',
    };
    const started = (name?: 'dpmpp_2m' | 'dpmpp_2m_karras') => {
      const scheduler = createScheduler(name, own);
      scheduler.setTimesteps(5);
      return scheduler;
    };
    const step = (scheduler: Scheduler) => scheduler.step(new Float32Array(4), 999, new Float32Array(4));
    expect([...started().timesteps]).toEqual([999, 786, 427, 59, 0]);
    expect(() => step(started())).toThrow('adds noise');
    expect([...started('dpmpp_2m_karras').timesteps]).toEqual([999, 786, 427, 59, 0]);
    expect(() => step(started('dpmpp_2m_karras'))).not.toThrow();
    expect([...started('dpmpp_2m').timesteps]).toEqual([999, 799, 599, 400, 200]);
  });

  it.each<[SchedulerJson, RegExp]>([
    [{}, /names no class/],
    [{ _class_name: 'FlowMatchLCMScheduler' }, /class "FlowMatchLCMScheduler" is not supported/],
    [{ ...flowJson, stochastic_sampling: true }, /stochastic_sampling is not supported/],
    [{ ...flowJson, _class_name: 'DDIMScheduler', use_flow_sigmas: true }, /not for flow matching/],
    [{ ...solverJson, _class_name: 'DEISMultistepScheduler' }, /use_flow_sigmas needs/],
    [{ ...solverJson, algorithm_type: 'dpmsolver', final_sigmas_type: 'sigma_min' }, /use_flow_sigmas needs/],
    [{ ...solverJson, use_karras_sigmas: true }, /another spacing/],
    [{ _class_name: 'constructor' }, /"constructor" is not supported/],
    [{ _class_name: 'DDPMScheduler', variance_type: 'learned_range' }, /variance_type "learned_range"/],
    [{ _class_name: 'DPMSolverMultistepScheduler', algorithm_type: 'dpm' }, /algorithm_type "dpm" is not supported/],
    [
      { _class_name: 'DPMSolverMultistepScheduler', algorithm_type: 'dpmsolver' },
      /algorithm_type "dpmsolver" needs the final_sigmas_type "sigma_min"/,
    ],
    [{ _class_name: 'DPMSolverSinglestepScheduler', algorithm_type: 'sde-dpmsolver' }, /"sde-dpmsolver" is not/],
    [{ _class_name: 'DEISMultistepScheduler', algorithm_type: 'sde-dpmsolver++' }, /"sde-dpmsolver\+\+" is not/],
    [{ _class_name: 'KDPM2DiscreteScheduler', prediction_type: 'sample' }, /cannot work with/],
    [{ _class_name: 'EulerDiscreteScheduler', use_beta_sigmas: true, use_karras_sigmas: true }, /Only one of/],
    [{ _class_name: 'UniPCMultistepScheduler', solver_type: 'x' }, /solver_type "x"/],
    [{ _class_name: 'PNDMScheduler', prediction_type: 'sample' }, /cannot work with/],
    [{ _class_name: 'DDIMScheduler', beta_start: 0.9, beta_end: 0.9 }, /leave no signal/],
  ])('refuses %j', (config, sentence) => {
    expect(() => createScheduler(undefined, config)).toThrow(SchedulerError);
    expect(() => createScheduler(undefined, config)).toThrow(sentence);
  });

  it('rejects an unknown name', () => {
    expect(() => createScheduler('toString' as 'ddim', json)).toThrow(/no scheduler "toString"; there are ddim, ddpm/);
  });
});

describe('schedulers of flow matching', () => {
  const started = (name: (typeof flowNames)[number] | undefined, config: SchedulerJson, tokens?: number) => {
    const scheduler = createScheduler(name, config);
    scheduler.setTimesteps(4, tokens === undefined ? undefined : { tokens });
    return scheduler;
  };

  it.each(flowNames)('%s brings noise to the picture that a perfect model predicts', (name) => {
    const scheduler = started(name, flowJson);
    const [x0, noise] = [new Generator(1).randn(32), new Generator(2).randn(32)];
    const velocity = noise.map((value, i) => value - x0[i]);
    let sample: Float32Array = noise;
    for (const timestep of scheduler.timesteps) {
      const expected = scheduler.expectedPicture(velocity, timestep, sample);
      // The whole timesteps of some lie up to a thousandth below their noise levels.
      expected.forEach((value, i) => expect(value).toBeCloseTo(x0[i], 1));
      sample = scheduler.step(velocity, timestep, sample);
    }
    sample.forEach((value, i) => expect(value).toBeCloseTo(x0[i], 2));
  });

  it.each(flowNames)('%s begins in the middle with a picture that has as much noise as it expects', (name) => {
    const scheduler = started(name, flowJson);
    scheduler.beginAt(2);
    const sigma = scheduler.timesteps[scheduler.firstCall] / 1000;
    const [sample] = scheduler.addNoise(Float32Array.of(1), Float32Array.of(-1));
    expect(sample).toBeCloseTo(1 - 2 * sigma, 2);
  });

  it('are refused for models with betas, and others for models of flow matching, with those that fit', () => {
    const fitting = /no scheduler "ddim" for flow matching; there are euler, heun, dpmpp_2m, unipc, dpmpp_2s\.$/;
    expect(() => createScheduler('ddim', flowJson)).toThrow(fitting);
    expect(() => createScheduler('ddim', solverJson)).toThrow(fitting);
    expect(createScheduler('euler', json).constructor.name).toBe('EulerDiscreteScheduler');
    expect(schedulerNamesFor(json)).toEqual(schedulerNames);
  });

  it("have the shift of the model's own, by whichever name", () => {
    expect([...started('unipc', flowJson).timesteps]).toEqual([...started('unipc', solverJson).timesteps]);
    expect([...started('euler', solverJson).timesteps]).toEqual([...started(undefined, flowJson).timesteps]);
    expect([...started(undefined, flowJson).timesteps]).toEqual([1000, 900, 750, 500]);
  });

  it('shift by the size of the picture where the model asks for it', () => {
    const dynamic = { ...flowJson, use_dynamic_shifting: true };
    const [small, large] = [1024, 4096].map((tokens) => started('dpmpp_2m', dynamic, tokens).timesteps[2]);
    expect(large).toBeGreaterThan(small);
    expect(() => started('heun', dynamic)).toThrow(/needs the number of tokens/);
    const empty = { ...dynamic, time_shift_type: 'linear', base_shift: 0, max_shift: 0 };
    expect(() => started('euler', empty, 1024)).toThrow(/must be positive/);
  });

  it.each([
    { base_image_seq_len: 256, max_image_seq_len: 256 },
    { base_image_seq_len: 256, max_image_seq_len: 257, max_shift: 100 },
    { base_image_seq_len: 4096, max_image_seq_len: 256, time_shift_type: 'linear' },
  ])('refuse %j before anything is drawn', (line) => {
    expect(() => createScheduler(undefined, { ...flowJson, use_dynamic_shifting: true, ...line })).toThrow(
      /^The shift for \d+ tokens must be positive and finite/,
    );
    expect(() => createScheduler(undefined, { ...flowJson, ...line })).not.toThrow();
  });

  it.each(flowNames)('%s stays finite for any number of steps, without noise of its own', (name) => {
    for (const steps of [1, 2, 3, 17, 50])
      expect(run(createScheduler(name, flowJson), steps, 4).every(Number.isFinite)).toBe(true);
  });

  it('know the lines of diffusers', () => {
    const config = readSchedulerConfig(flowJson, { shift: 1 });
    expect(calculateShift(256, config)).toBeCloseTo(0.5, 12);
    expect(calculateShift(4096, config)).toBeCloseTo(1.15, 12);
    expect(computeEmpiricalMu(1024, 4)).toBeCloseTo(2.0306897, 6);
    expect(computeEmpiricalMu(4301, 4)).toBeCloseTo(1.1846969, 6);
  });
});

describe(schedulerNameOf.name, () => {
  it.each<[SchedulerJson, string | undefined]>([
    [{ _class_name: 'PNDMScheduler' }, 'pndm'],
    [{ _class_name: 'EulerAncestralDiscreteScheduler' }, 'euler_a'],
    [{ _class_name: 'DPMSolverMultistepScheduler' }, 'dpmpp_2m'],
    [{ _class_name: 'DPMSolverMultistepScheduler', use_karras_sigmas: true }, 'dpmpp_2m_karras'],
    [
      { _class_name: 'DPMSolverMultistepScheduler', use_karras_sigmas: true, algorithm_type: 'sde-dpmsolver++' },
      'dpmpp_2m_sde_karras',
    ],
    [{ _class_name: 'DPMSolverMultistepScheduler', algorithm_type: 'sde-dpmsolver++' }, undefined],
    [{ _class_name: 'DPMSolverMultistepScheduler', solver_order: 3 }, undefined],
    [flowJson, 'euler'],
    [{ _class_name: 'FlowMatchHeunDiscreteScheduler' }, 'heun'],
    [solverJson, 'dpmpp_2m'],
    [{ ...solverJson, _class_name: 'UniPCMultistepScheduler' }, 'unipc'],
    [{ ...solverJson, solver_order: 3 }, undefined],
  ])('names %j %s', (config, name) => expect(schedulerNameOf(config)).toBe(name));
});
