import { BaseScheduler } from './base-scheduler';
import { alphasCumprod } from './noise-schedule';
import { derivative, weightedSum } from './prediction';
import type { SchedulerConfig, SchedulerParameters } from './scheduler-config';
import { initialNoiseSigma, scaleToUnitVariance, sigmaSchedule } from './sigmas';

const maxOrder = 4;

/**
 * Linear multistep method over the noise level, of order up to four.
 * Source: Katherine Crowson's k-diffusion, sample_lms; diffusers' LMSDiscreteScheduler.
 */
export class LmsDiscreteScheduler extends BaseScheduler {
  static readonly parameters: SchedulerParameters = {
    use_karras_sigmas: false,
    use_exponential_sigmas: false,
    use_beta_sigmas: false,
  };

  private readonly alphas: Float32Array;
  private sigmas: Float32Array = new Float32Array(0);
  /** Derivatives by the noise level, the newest first. */
  private derivatives: Float32Array[] = [];

  constructor(config: SchedulerConfig) {
    super(config);
    this.alphas = alphasCumprod(config);
  }

  override scaleModelInput(sample: Float32Array): Float32Array {
    return scaleToUnitVariance(sample, this.sigmas[this.stepIndex]);
  }

  protected start(steps: number): Float64Array {
    const { sigmas, timesteps } = sigmaSchedule(this.config, this.alphas, steps);
    this.sigmas = sigmas;
    this.initNoiseSigma = initialNoiseSigma(this.config, sigmas);
    this.derivatives = [];
    return timesteps;
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    // 1. The derivative at this noise level.
    const newest = derivative(this.config.predictionType, this.sigmas[this.stepIndex], modelOutput, sample);
    this.derivatives = [newest, ...this.derivatives.slice(0, maxOrder - 1)];

    // 2. The integral of the polynomial through the derivatives, from this noise level to the next.
    const weights = this.derivatives.map((_, k) => this.integratedWeight(k));
    return weightedSum([...weights, 1], [...this.derivatives, sample]);
  }

  /** The integral of Lagrange's basis polynomial k, at most cubic, for which two-point Gauss-Legendre quadrature is exact. */
  private integratedWeight(k: number): number {
    const { sigmas, stepIndex: now } = this;
    const basis = (sigma: number) =>
      this.derivatives.reduce(
        (product, _, j) =>
          j === k ? product : (product * (sigma - sigmas[now - j])) / (sigmas[now - k] - sigmas[now - j]),
        1,
      );
    const middle = (sigmas[now] + sigmas[now + 1]) / 2;
    const half = (sigmas[now + 1] - sigmas[now]) / 2;
    return half * (basis(middle - half / Math.sqrt(3)) + basis(middle + half / Math.sqrt(3)));
  }
}
