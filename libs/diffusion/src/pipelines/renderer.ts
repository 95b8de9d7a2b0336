import { assertFinite } from '../tensor/not-finite';
import type { RgbImage } from '../tensor/rgb-image';
import type { Unet } from '../unet/unet';
import type { VaeDecoder } from '../vae/vae-decoder';
import type { ModelFacts } from './model-facts';
import { RowBatch } from './row-batch';
import type { Trajectory } from './trajectory';

/** Sizes and prompt lengths whose inputs are kept for the next step. */
const keptBatches = 4;

/**
 * Equal for pictures of one size and prompt length, whose rows a call takes equally long for, and equal
 * memory, at any timestep.
 */
export function kindOf({ shape, prompt }: Pick<Trajectory, 'shape' | 'prompt'>): string {
  return [...shape, prompt.tokens].join('x');
}

/**
 * Moves pictures on and decodes them, by one U-Net and one decoder. A picture may go from one renderer of a model to
 * another between two steps.
 */
export class Renderer {
  private readonly batches = new Map<string, RowBatch>();

  constructor(
    private readonly unet: Unet,
    private readonly vaeDecoder: VaeDecoder,
    private readonly facts: Pick<ModelFacts, 'hiddenWidth'>,
  ) {}

  /** Pictures with the same group may share a call. */
  groupOf({ shape, prompt, timestep }: Pick<Trajectory, 'shape' | 'prompt' | 'timestep'>): string {
    const kind = kindOf({ shape, prompt });
    return this.unet.takesTimestepPerRow ? kind : `${kind} at ${timestep}`;
  }

  /** Moves pictures of one group on by one call of the U-Net. */
  async step(trajectories: readonly Trajectory[]): Promise<void> {
    const [first] = trajectories;
    const group = this.groupOf(first);
    if (trajectories.some((trajectory) => trajectory.done || this.groupOf(trajectory) !== group))
      throw new RangeError('Pictures share a step only while none is done, and with one size and prompt length.');
    await this.batchOf(first).step(trajectories);
  }

  /** The picture as it stands. @throws NotFiniteError if it is none */
  async decode({ latents, shape }: Pick<Trajectory, 'latents' | 'shape'>): Promise<RgbImage> {
    assertFinite(latents, 'U-Net');
    return this.vaeDecoder.decode(latents, shape);
  }

  private batchOf({ shape, prompt }: Trajectory): RowBatch {
    const key = kindOf({ shape, prompt });
    const batch = this.batches.get(key) ?? new RowBatch(this.unet, shape, prompt.tokens, this.facts.hiddenWidth);
    // The one that was used last stays for longest.
    this.batches.delete(key);
    this.batches.set(key, batch);
    if (this.batches.size > keptBatches) this.batches.delete(this.batches.keys().next().value!);
    return batch;
  }
}
