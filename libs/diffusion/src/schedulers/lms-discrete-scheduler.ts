import { derivative, weightedSum } from './prediction';
import { type SchedulerParameters, sigmaSpacing } from './scheduler-config';
import { SigmaScheduler } from './sigma-scheduler';

const maxOrder = 4;

/**
 * Linear multistep method over the noise level, of order up to four.
 * Source: Katherine Crowson's k-diffusion, sample_lms; diffusers' LMSDiscreteScheduler.
 */
export class LmsDiscreteScheduler extends SigmaScheduler {
  static readonly parameters: SchedulerParameters = sigmaSpacing;

  /** Derivatives by the noise level, the newest first. */
  private derivatives: Float32Array[] = [];

  protected override start(steps: number): Float64Array {
    this.derivatives = [];
    return super.start(steps);
  }

  protected advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    // 1. The derivative at this noise level.
    const newest = derivative(this.config, this.sigmas[this.stepIndex], modelOutput, sample);
    this.derivatives = [newest, ...this.derivatives.slice(0, maxOrder - 1)];

    // 2. The integral of the polynomial through the derivatives, from this noise level to the next.
    const weights = this.derivatives.map((_, k) => this.integratedWeight(k));
    return weightedSum([...weights, 1], [...this.derivatives, sample]);
  }

  /** The integral of Lagrange's basis polynomial k, at most cubic, for which two Gauss-Legendre points are exact. */
  private integratedWeight(k: number): number {
    const { sigmas, stepIndex: now } = this;
    // A run that leaves out its first steps has fewer derivatives at first; diffusers fills up with zeros.
    const places = Array.from({ length: Math.min(now + 1, maxOrder) }, (_, j) => sigmas[now - j]);
    const basis = (sigma: number) =>
      places.reduce((product, place, j) => (j === k ? product : (product * (sigma - place)) / (places[k] - place)), 1);
    const middle = (sigmas[now] + sigmas[now + 1]) / 2;
    const half = (sigmas[now + 1] - sigmas[now]) / 2;
    return half * (basis(middle - half / Math.sqrt(3)) + basis(middle + half / Math.sqrt(3)));
  }
}
