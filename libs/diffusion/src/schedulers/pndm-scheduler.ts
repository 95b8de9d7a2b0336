import { predictedNoise, weightedSum } from './prediction';
import { DiscreteScheduler } from './discrete-scheduler';
import { type SchedulerConfig, SchedulerError, type SchedulerParameters } from './scheduler-config';
import { integerTimesteps } from './timesteps';

/** Weights of the newest and of older model outputs: Adams-Bashforth of order 1 to 4. */
const multistep = [[1], [3 / 2, -1 / 2], [23 / 12, -16 / 12, 5 / 12], [55 / 24, -59 / 24, 37 / 24, -9 / 24]];
/** Weights of the newest and of older model outputs at the end of four Runge-Kutta stages. */
const rungeKutta = [1 / 6, 1 / 3, 1 / 3, 1 / 6];

/**
 * Pseudo numerical methods: a linear multistep method, started by four-stage Runge-Kutta steps unless `skip_prk_steps`
 * is set. A run has one more call of the denoiser than steps (its second timestep comes twice), or nine more with
 * Runge-Kutta.
 * Source: Liu et al., "Pseudo Numerical Methods for Diffusion Models on Manifolds" (2022), equations 9, 12 and 13;
 * diffusers' PNDMScheduler.
 */
export class PndmScheduler extends DiscreteScheduler {
  static readonly parameters: SchedulerParameters = {
    skip_prk_steps: false,
    set_alpha_to_one: false,
    timestep_spacing: 'leading',
  };

  private stride = 0;
  private rungeKuttaCalls = 0;
  /** Model outputs, the newest first, at most four. */
  private history: Float32Array[] = [];
  /** Model outputs of the current Runge-Kutta stages, the newest first. */
  private stages: Float32Array[] = [];
  private anchor: Float32Array | undefined;

  constructor(config: SchedulerConfig) {
    super(config);
    if (config.predictionType === 'sample')
      throw new SchedulerError('PNDMScheduler cannot work with the prediction_type "sample".');
  }

  protected start(steps: number): Float64Array {
    this.stride = Math.floor(this.config.numTrainTimesteps / steps);
    this.history = [];
    this.stages = [];
    const spaced = integerTimesteps(this.config, steps);
    // Four Runge-Kutta timesteps need four steps; diffusers fails with fewer.
    if (this.config.skipPrkSteps || steps < 4) {
      this.rungeKuttaCalls = 0;
      return steps < 2 ? spaced : Float64Array.of(spaced[0], spaced[1], ...spaced.subarray(1));
    }
    const half = Math.floor(this.stride / 2);
    const staged = [0, 1, 2].flatMap((i) => [spaced[i], spaced[i + 1] + half, spaced[i + 1] + half, spaced[i + 1]]);
    this.rungeKuttaCalls = staged.length;
    return Float64Array.of(...staged, ...spaced.subarray(3));
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    const output = modelOutput.slice();
    return this.calls < this.rungeKuttaCalls ? this.runge(output, sample) : this.adams(output, sample);
  }

  /** Calls of this run so far. A run that leaves out its first steps starts as if these were its first. */
  private get calls(): number {
    return this.stepIndex - this.beginIndex;
  }

  /**
   * Two half-way evaluations, one full step, then the step itself, all from the sample of the first of the four calls.
   */
  private runge(output: Float32Array, sample: Float32Array): Float32Array {
    const stage = this.calls % 4;
    const timestep = this.timesteps[this.calls - stage];
    const now = this.timesteps[this.stepIndex];
    const target = stage % 2 ? now : now - Math.floor(this.stride / 2);
    this.stages = [output, ...this.stages];
    if (stage === 0) {
      this.anchor = sample;
      this.history = [output, ...this.history];
    }
    if (stage < 3) return this.transfer(this.anchor ?? sample, timestep, target, [1], [output]);
    const previous = this.transfer(this.anchor ?? sample, timestep, target, rungeKutta, this.stages);
    this.stages = [];
    return previous;
  }

  private adams(output: Float32Array, sample: Float32Array): Float32Array {
    const now = this.timesteps[this.stepIndex];
    // The first step is made twice: the second time with the mean of the outputs at both of its ends (Heun's rule).
    if (this.rungeKuttaCalls === 0 && this.calls === 1)
      return this.transfer(this.anchor ?? sample, now + this.stride, now, [0.5, 0.5], [output, ...this.history]);
    if (this.calls === 0) this.anchor = sample;
    this.history = [output, ...this.history.slice(0, 3)];
    return this.transfer(sample, now, now - this.stride, multistep[this.history.length - 1], this.history);
  }

  /** From timestep `from` to `to` with the model output sum(weights * outputs): equation 9 of the paper. */
  private transfer(
    sample: Float32Array,
    from: number,
    to: number,
    weights: readonly number[],
    outputs: readonly Float32Array[],
  ): Float32Array {
    // 1. The shares of signal at both ends.
    const alpha = this.alphas[from];
    const before = to >= 0 ? this.alphas[to] : this.config.setAlphaToOne ? 1 : this.alphas[0];

    // 2. The factors of the sample and of the predicted noise.
    const scale = alpha * Math.sqrt(1 - before) + Math.sqrt(alpha * (1 - alpha) * before);
    const noiseWeight = (alpha - before) / scale;
    const noise = predictedNoise(this.config.predictionType, Math.sqrt(alpha), Math.sqrt(1 - alpha));

    // 3. The previous sample.
    const sampleWeight = Math.sqrt(before / alpha) + noiseWeight * noise.sample;
    return weightedSum(
      [sampleWeight, ...weights.map((weight) => noiseWeight * noise.output * weight)],
      [sample, ...outputs],
    );
  }
}
