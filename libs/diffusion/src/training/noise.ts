import type { ModelFolder } from '../families/model-folder';
import { FlowMatchEulerDiscreteScheduler } from '../schedulers/flow-match-euler-discrete-scheduler';
import { shiftFactor } from '../schedulers/flow-sigmas';
import { alphasCumprod } from '../schedulers/noise-schedule';
import {
  isOfFlow,
  type PredictionType,
  readSchedulerConfig,
  type SchedulerConfig,
} from '../schedulers/scheduler-config';
import type { Example, PriorRow } from './examples';

/** One picture at one time: what the denoiser sees, and what it should say. */
export interface TrainingRow extends PriorRow {
  /** Weight of its loss. */
  weight: number;
}

/** How noise grows for a model, and what of it the denoiser predicts. */
export interface Noising {
  /**
   * @param time from 0 up to 1, which is noise; each as likely as any other
   * @param gamma bound of the loss's weight by signal and noise; 0 is none
   */
  row(example: Example, latents: Float32Array, noise: Float32Array, time: number, gamma?: number): TrainingRow;
}

type NoisedModel = Pick<ModelFolder, 'schedulerJson' | 'muOf' | 'defaults'> & {
  denoiser: Pick<ModelFolder['denoiser'], 'patch'>;
};

/** Steps that levels are dense for where a model does not say in how many it is drawn. */
const usualSteps = 50;

/** The noise of a model, by its scheduler. */
export const noisingOf = (model: NoisedModel): Noising =>
  isOfFlow(model.schedulerJson) ? new FlowNoising(model) : new DiscreteNoising(model);

/** Noise in steps that are numbered, of Stable Diffusion. */
class DiscreteNoising implements Noising {
  private readonly alphas: Float32Array;
  private readonly predictionType: PredictionType;

  constructor({ schedulerJson }: NoisedModel) {
    const config = readSchedulerConfig(schedulerJson, { rescale_betas_zero_snr: false });
    this.alphas = alphasCumprod(config);
    this.predictionType = config.predictionType;
  }

  /** Source: Ho et al., "Denoising Diffusion Probabilistic Models" (2020); Salimans and Ho (2022) for v. */
  row({ shape, text }: Example, latents: Float32Array, noise: Float32Array, time: number, gamma = 0): TrainingRow {
    const timestep = Math.floor(time * this.alphas.length);
    const alpha = this.alphas[timestep];
    const [signal, sigma] = [Math.sqrt(alpha), Math.sqrt(1 - alpha)];
    const sample = latents.map((value, i) => signal * value + sigma * noise[i]);
    const targets: Record<PredictionType, () => Float32Array> = {
      epsilon: () => noise,
      sample: () => latents,
      v_prediction: () => latents.map((value, i) => signal * noise[i] - sigma * value),
    };
    return {
      ...{ shape, text, sample, timestep, target: targets[this.predictionType]() },
      weight: gamma > 0 ? this.weight(alpha / (1 - alpha), gamma) : 1,
    };
  }

  /** Source: Hang et al., "Efficient Diffusion Training via Min-SNR Weighting Strategy" (2023), section 3.4. */
  private weight(ratio: number, gamma: number): number {
    const least = Math.min(ratio, gamma);
    if (this.predictionType === 'sample') return least;
    return this.predictionType === 'epsilon' ? Math.min(1, gamma / ratio) : least / (ratio + 1);
  }
}

/**
 * Noise of flow matching: straight lines from picture to noise, along which the velocity is predicted. Times are as
 * likely as the levels that a picture is drawn at are dense: even ones, moved by the model's own shift. All count
 * alike.
 * Source: Esser et al., "Scaling Rectified Flow Transformers for High-Resolution Image Synthesis" (2024), equations 1,
 * 13 and 23.
 */
class FlowNoising implements Noising {
  private readonly config: SchedulerConfig;

  constructor(private readonly model: NoisedModel) {
    const { schedulerJson: json } = model;
    // Two kinds of classes call one thing by two names.
    const shift = json.use_flow_sigmas === true ? json.flow_shift : json.shift;
    this.config = readSchedulerConfig({ ...json, shift }, FlowMatchEulerDiscreteScheduler.parameters);
  }

  row({ shape, text }: Example, latents: Float32Array, noise: Float32Array, time: number): TrainingRow {
    const { config, model } = this;
    const [, height, width] = shape;
    const tokens = (height * width) / (model.denoiser.patch ?? 1) ** 2;
    const size = { tokens, ...(model.muOf && { muOf: model.muOf }) };
    const shift = shiftFactor(config.shift, config, model.defaults.steps ?? usualSteps, size);
    const sigma = (shift * time) / (1 + (shift - 1) * time);
    return {
      ...{ shape, text, timestep: sigma * config.numTrainTimesteps, weight: 1 },
      sample: latents.map((value, i) => (1 - sigma) * value + sigma * noise[i]),
      target: latents.map((value, i) => noise[i] - value),
    };
  }
}
