import type { Conditioning } from '../conditioners/conditioner';
import type { Generator } from '../random/generator';
import type { Scheduler } from '../schedulers/scheduler';
import type { LatentShape, RgbImage } from '../tensor/planes';
import type { DenoiserRow, Reference, RowControl } from '../denoisers/denoiser';
import { type LayerAdapters, noAdapters } from '../adapters/row-adapters';
import { joined, keep, type KeptLatents } from './starting-picture';
import type { Mask } from './text-to-image-request';

/** Conditions of a picture's rows. */
export interface PictureConditions {
  prompt: Conditioning;
  guidanceScale: number;
  /** Terms that its Fine-Tunes add to the denoiser's layers. */
  adapters?: LayerAdapters;
  /** For each row, further channels behind the latents': of an inpainting model the mask and what it leaves. */
  furtherChannels?: readonly Float32Array[];
  /** The part of the picture that it starts from which is kept. */
  kept?: KeptLatents;
  controls?: readonly TimedControl[];
  /** Pictures that it looks at. */
  references?: readonly Reference[];
  imageGuidanceScale?: number;
  /** The part of the decoded picture that is replaced by the one that it starts from. */
  overlay?: { original: RgbImage; mask: Mask };
}

/** A ControlNet that guides a part of the steps, from 0 to 1 of them. */
export interface TimedControl extends RowControl {
  start: number;
  end: number;
}

/**
 * One picture on its way from noise to latents. It has its own scheduler, generator, step and guidance, so it does not
 * matter which others share its calls of the denoiser, nor at which step they are.
 */
export class Trajectory {
  stepIndex = 0;
  /** The last input of the denoiser for this picture, and the guided prediction it made: kept for previews. */
  seen: Float32Array;
  readonly predicted: Float32Array;
  lastTimestep: number | undefined;
  private isMoving = false;
  /** Where its scheduler begins: a picture to start from stands for the steps before. */
  private readonly firstCall: number;

  /** @param latents [channels, height, width], scaled as the scheduler wants them; every step replaces them. */
  constructor(
    readonly shape: LatentShape,
    public latents: Float32Array,
    private readonly scheduler: Scheduler,
    private readonly generator: Generator,
    private readonly conditions: PictureConditions,
  ) {
    this.seen = latents;
    this.firstCall = scheduler.firstCall;
    this.predicted = new Float32Array(latents.length);
  }

  /** Calls of the denoiser in all; some schedulers make more of them than the request has steps. */
  get totalSteps(): number {
    return this.scheduler.timesteps.length - this.firstCall;
  }

  get remainingSteps(): number {
    return this.totalSteps - this.stepIndex;
  }

  get done(): boolean {
    return this.remainingSteps === 0;
  }

  /**
   * Whether a step failed on the way: its scheduler may have noted the prediction or drawn noise, so that
   * it cannot be repeated.
   */
  get isSpoilt(): boolean {
    return this.isMoving;
  }

  /** Time, as the next call of the denoiser is told of it. */
  get timestep(): number {
    return this.scheduler.timesteps[this.firstCall + this.stepIndex];
  }

  /** Rows of a call that this picture takes: one; two with guidance; three where guidance is by a picture too. */
  get rows(): number {
    return this.prompt.rows.length;
  }

  get prompt(): Conditioning {
    return this.conditions.prompt;
  }

  get adapters(): LayerAdapters {
    return this.conditions.adapters ?? noAdapters;
  }

  get references(): readonly Reference[] {
    return this.conditions.references ?? [];
  }

  get overlay(): PictureConditions['overlay'] {
    return this.conditions.overlay;
  }

  /** This picture's rows of the next call. */
  gather(): DenoiserRow[] {
    this.seen = this.scheduler.scaleModelInput(this.latents, this.timestep);
    const { timestep, adapters, prompt, references } = this;
    const { guidanceScale, furtherChannels } = this.conditions;
    const controls = this.controls();
    return prompt.rows.map((conditioning, row) => {
      const sample = furtherChannels ? joined(this.seen, furtherChannels[row]) : this.seen;
      return { sample, timestep, conditioning, guidanceScale, adapters, controls, references };
    });
  }

  /** Takes the predictions for those rows and moves on by a step. */
  scatter(predictions: readonly Float32Array[]): void {
    const { predicted, timestep } = this;
    this.isMoving = true;
    const [first, second, third] = predictions;
    const { guidanceScale, kept, imageGuidanceScale = 1 } = this.conditions;
    if (third) guideTwice(predicted, first, second, third, guidanceScale, imageGuidanceScale);
    else if (second) guide(predicted, first, second, guidanceScale);
    else predicted.set(first);
    this.latents = this.scheduler.step(predicted, timestep, this.latents, this.generator);
    this.lastTimestep = timestep;
    this.stepIndex++;
    if (kept) this.latents = keep(kept, this.latents, this.done ? undefined : this.scheduler);
    this.isMoving = false;
  }

  /** The picture that the last prediction means (x0), in latents; the noise itself before the first step. */
  expectedLatents(): Float32Array {
    const { lastTimestep, latents, seen, predicted } = this;
    if (this.done || lastTimestep === undefined) return latents;
    return this.scheduler.expectedPicture(predicted, lastTimestep, seen);
  }

  /** The ControlNets that guide the next call. Source: `controlnet_keep` of diffusers' pipelines. */
  private controls(): RowControl[] | undefined {
    const { stepIndex, totalSteps } = this;
    return this.conditions.controls?.filter(
      ({ start, end, scale }) => scale !== 0 && !(stepIndex / totalSteps < start || (stepIndex + 1) / totalSteps > end),
    );
  }
}

/** Source: Ho and Salimans, "Classifier-Free Diffusion Guidance" (2022), equation 6 in the form that diffusers uses. */
function guide(into: Float32Array, uncond: Float32Array, cond: Float32Array, scale: number): void {
  for (let i = 0; i < into.length; i++) into[i] = uncond[i] + scale * (cond[i] - uncond[i]);
}

/** The same for a picture that is changed: of rows with prompt and picture, with the picture, and with neither. */
function guideTwice(
  into: Float32Array,
  text: Float32Array,
  image: Float32Array,
  uncond: Float32Array,
  scale: number,
  imageScale: number,
): void {
  for (let i = 0; i < into.length; i++)
    into[i] = uncond[i] + scale * (text[i] - image[i]) + imageScale * (image[i] - uncond[i]);
}
