import { FlowMatchEulerDiscreteScheduler } from './flow-match-euler-discrete-scheduler';
import { weightedSum } from './prediction';
import type { RunSize } from './scheduler';
import { timestepsOfCalls } from './sigma-scheduler';

/**
 * Heun's method for models of flow matching: an Euler step, then the same step with the mean of the predictions at both
 * ends; the last step is Euler's. diffusers' class knows a static shift only; a dynamic one is that of Euler's.
 * Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models" (2022), algorithm 1;
 * diffusers' FlowMatchHeunDiscreteScheduler.
 */
export class FlowMatchHeunDiscreteScheduler extends FlowMatchEulerDiscreteScheduler {
  override readonly order = 2;
  /** The step whose second call is next: its sample and prediction; undefined if the first call of a step is next. */
  private origin: { sample: Float32Array; output: Float32Array } | undefined;

  protected override start(steps: number, size?: RunSize): Float64Array {
    this.origin = undefined;
    const timesteps = super.start(steps, size);
    return timestepsOfCalls(timesteps, (step) => timesteps[step + 1]);
  }

  /** That of the first training timestep, which diffusers has shifted once before it shifts all of them. */
  protected override lowestSigma(): number {
    const { useDynamicShifting, numTrainTimesteps } = this.config;
    const shift = useDynamicShifting ? 1 : this.config.shift;
    return shift / (numTrainTimesteps + shift - 1);
  }

  protected override advance(modelOutput: Float32Array, sample: Float32Array): Float32Array {
    const current = this.stepIndex >> 1;
    const step = Math.fround(this.sigmas[current + 1] - this.sigmas[current]);

    // 1. First call of a step: a straight line to the next noise level, to be corrected.
    if (!this.origin) {
      this.origin = { sample, output: modelOutput.slice() };
      return weightedSum([1, step], [sample, modelOutput]);
    }

    // 2. Second call: the step again, with the mean of both predictions.
    const { sample: from, output } = this.origin;
    this.origin = undefined;
    return weightedSum([1, step], [from, weightedSum([0.5, 0.5], [output, modelOutput])]);
  }
}
