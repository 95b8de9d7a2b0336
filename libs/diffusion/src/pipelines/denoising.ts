import type { Generator } from '../random';
import type { Scheduler } from '../schedulers';
import type { LatentShape } from '../tensor/latent-shape';
import type { UnetBatch } from '../unet/unet';

/** One picture on its way: its own noise, its own scheduler, its own latents, so that its neighbours in a batch do not matter. */
export interface DenoisingImage {
  readonly seed: number;
  readonly generator: Generator;
  readonly scheduler: Scheduler;
  /** [channels, height, width], as the scheduler scales them; replaced by every step. */
  latents: Float32Array;
  /** What the U-Net last saw of this picture, and the guided prediction it made, both kept for previews. */
  seen: Float32Array;
  readonly predicted: Float32Array;
}

/**
 * All the state of one request between two steps. A step is `gather`, one call of the U-Net, `scatter`; as both work on a range of
 * rows, one call can as well carry the rows of many requests that are at different steps.
 */
export class Denoising {
  /** Steps done. */
  stepIndex = 0;
  /** The timestep of the last step done, if any. */
  lastTimestep: number | undefined;

  constructor(
    readonly images: readonly DenoisingImage[],
    readonly shape: LatentShape,
    /** Weight of the prompt against the negative prompt; without guidance a picture takes one row in place of two. */
    readonly guidanceScale: number,
    readonly width: number,
    readonly height: number,
    /** Rows of `maxTokens` that the longer of prompt and negative prompt took. */
    readonly promptChunks: number,
    /** The U-Net's inputs, with the embeddings already in place. */
    readonly batch: UnetBatch,
  ) {}

  /** Calls of the U-Net in all; some schedulers make more of them than there are steps in the request. */
  get totalSteps(): number {
    return this.images[0].scheduler.timesteps.length;
  }

  get done(): boolean {
    return this.stepIndex >= this.totalSteps;
  }

  /** What the next call of the U-Net is told of time. */
  get timestep(): number {
    return this.images[0].scheduler.timesteps[this.stepIndex];
  }

  get guided(): boolean {
    return this.guidanceScale > 1;
  }

  /** Rows of a call: first those of the negative prompt, one an image, then those of the prompt. */
  get rows(): number {
    return this.images.length * (this.guided ? 2 : 1);
  }

  /** Writes this request's rows [rows, channels, height, width] for the next step. */
  gather(sample: Float32Array): void {
    const { images, timestep } = this;
    images.forEach((image, i) => {
      image.seen = image.scheduler.scaleModelInput(image.latents, timestep);
      sample.set(image.seen, i * image.seen.length);
      if (this.guided) sample.set(image.seen, (images.length + i) * image.seen.length);
    });
  }

  /** Takes the U-Net's prediction for those rows and moves every picture on by a step. */
  scatter(prediction: Float32Array): void {
    const { images, timestep } = this;
    images.forEach((image, i) => {
      const { predicted, scheduler, generator, latents } = image;
      const size = predicted.length;
      const first = prediction.subarray(i * size, (i + 1) * size);
      if (this.guided) {
        const second = prediction.subarray((images.length + i) * size, (images.length + i + 1) * size);
        guide(predicted, first, second, this.guidanceScale);
      } else predicted.set(first);
      image.latents = scheduler.step(predicted, timestep, latents, { generator });
    });
    this.lastTimestep = timestep;
    this.stepIndex++;
  }
}

/** Source: Ho and Salimans, "Classifier-Free Diffusion Guidance" (2022), equation 6 in the form that diffusers uses. */
function guide(into: Float32Array, uncond: Float32Array, cond: Float32Array, scale: number): void {
  for (let i = 0; i < into.length; i++) into[i] = uncond[i] + scale * (cond[i] - uncond[i]);
}
