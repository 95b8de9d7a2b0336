import { pictureOf } from '../autoencoders/autoencoder';
import { assertFinite, type RgbImage } from '../tensor/planes';
import type { DenoiserRow } from '../denoisers/denoiser';
import type { LoadedParts, PipelineFacts } from './loaded-parts';
import { overlaid } from './starting-picture';
import type { Trajectory } from './trajectory';

/**
 * Equal for pictures of one size, prompt length and references: their rows take equally long in a call, and equal
 * memory, at any timestep. A picture with guidance has two rows of a length where one without has one.
 */
export function kindOf({ shape, prompt, references }: Pick<Trajectory, 'shape' | 'prompt' | 'references'>): string {
  return [...shape, ...new Set(prompt.lengths), ...references.flatMap((each) => each.shape)].join('x');
}

/** Told of a call's rows, and of what was predicted for each. */
export type HearPredictions = (rows: readonly DenoiserRow[], predictions: readonly Float32Array[]) => void;

/**
 * Moves pictures on and decodes them, by one denoiser and one decoder. A picture may go from one renderer of a model to
 * another between two steps.
 */
export class Renderer {
  /** The call that is under way: the next one waits for it. */
  private running: Promise<void> = Promise.resolve();

  constructor(protected readonly model: LoadedParts) {}

  get facts(): PipelineFacts {
    return this.model.facts;
  }

  /**
   * Moves pictures of one kind and rank on by one call of the denoiser, whichever requests they belong to. If it fails,
   * none has moved; if a scheduler fails, that picture is spoilt.
   */
  step(trajectories: readonly Trajectory[], hear?: HearPredictions): Promise<void> {
    const step = this.running.then(() => this.advance(trajectories, hear));
    this.running = step.catch(() => undefined);
    return step;
  }

  /**
   * The picture as it stands, with what a mask keeps of the one it started from. @throws NotFiniteError if it is none
   */
  async decode({
    latents,
    shape,
    overlay,
  }: Pick<Trajectory, 'latents' | 'shape'> & Partial<Pick<Trajectory, 'overlay'>>): Promise<RgbImage> {
    assertFinite(latents, this.model.folder.denoiser.title);
    const image = pictureOf(await this.model.decoder.decode(latents, shape));
    return overlay ? overlaid(image, overlay.original, overlay.mask) : image;
  }

  private async advance(trajectories: readonly Trajectory[], hear?: HearPredictions): Promise<void> {
    const [first] = trajectories;
    const kind = kindOf(first);
    if (trajectories.some((trajectory) => trajectory.done || kindOf(trajectory) !== kind))
      throw new RangeError('Pictures share a step only while none is done, and with one size and prompt length.');
    const rows = trajectories.flatMap((trajectory) => trajectory.gather());
    const predictions = await this.model.denoiser.predict(rows, first.shape);
    hear?.(rows, predictions);
    let row = 0;
    for (const trajectory of trajectories) {
      trajectory.scatter(predictions.slice(row, row + trajectory.rows));
      row += trajectory.rows;
    }
  }
}
