import { BaseScheduler } from './base-scheduler';
import { checkDpmSolver, solverForm } from './exponential-integrator';
import type { SolverForm } from './exponential-integrator';
import type { Level } from './lambdas';
import { levelOf, solverSchedule } from './lambdas';
import { noise, picture } from './prediction';
import type { StepOptions } from './scheduler';
import type { SchedulerConfig } from './scheduler-config';

/**
 * What the multistep and the singlestep DPM solvers have in common: their noise levels, and what they
 * keep of earlier steps.
 */
export abstract class DpmSolverScheduler extends BaseScheduler {
  override readonly usesNoise: boolean;
  protected readonly form: SolverForm;
  protected levels: Level[] = [];
  /** Predicted pictures, or predicted noise, the newest first. */
  protected outputs: Float32Array[] = [];

  private readonly alphas: Float32Array;

  /**
   * @param algorithmTypes that the solver has
   * @param alphasOf cumulative products of the noise schedule
   */
  constructor(
    config: SchedulerConfig,
    algorithmTypes: readonly string[],
    alphasOf: (config: SchedulerConfig) => Float32Array,
  ) {
    super(config);
    checkDpmSolver(config, algorithmTypes);
    this.form = solverForm(config.algorithmType === 'deis' ? 'dpmsolver++' : config.algorithmType);
    this.usesNoise = this.form.stochastic;
    this.alphas = alphasOf(config);
  }

  protected start(steps: number): Float64Array {
    const { sigmas, timesteps } = solverSchedule(this.config, this.alphas, steps);
    this.levels = Array.from(sigmas, levelOf);
    this.outputs = [];
    return timesteps;
  }

  protected override maxSteps(): number {
    return this.config.numTrainTimesteps - 1;
  }

  /** Takes the picture, or the noise, that the model predicts. @param kept how many of the last ones are kept */
  protected keepOutput(modelOutput: Float32Array, sample: Float32Array, kept: number): void {
    const output = (this.form.ofNoise ? noise : picture)(this.config, this.levels[this.stepIndex], modelOutput, sample);
    this.outputs = [output, ...this.outputs.slice(0, kept - 1)];
  }

  /** Adds fresh noise, in place of what a stochastic equation has forgotten. */
  protected addNoise(sample: Float32Array, deviation: number, options: StepOptions): void {
    if (!this.form.stochastic) return;
    const fresh = this.noise(options, sample.length);
    for (let i = 0; i < sample.length; i++) sample[i] += deviation * fresh[i];
  }
}
