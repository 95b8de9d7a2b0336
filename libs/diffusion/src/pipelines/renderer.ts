import { assertFinite, type LatentShape, type RgbImage } from '../tensor/planes';
import { powerOfTwoFrom, type Unet, type UnetBatch } from '../unet/unet';
import type { VaeDecoder } from '../vae/vae-decoder';
import type { ModelFacts } from './model-facts';
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
    protected readonly unet: Unet,
    protected readonly vaeDecoder: VaeDecoder,
    readonly facts: ModelFacts,
  ) {}

  /**
   * Pictures with the same group may share a call of the U-Net: one size, one prompt length and, where the graph has one
   * timestep for all rows, one timestep.
   */
  groupOf({ shape, prompt, timestep }: Pick<Trajectory, 'shape' | 'prompt' | 'timestep'>): string {
    const kind = kindOf({ shape, prompt });
    return this.unet.takesTimestepPerRow ? kind : `${kind} at ${timestep}`;
  }

  /** Moves pictures of one group on by one call of the U-Net, whichever requests they belong to. */
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

/**
 * Pictures of one size and prompt length that share calls of the U-Net, whoever asked for them. They may join and leave
 * between two steps: only the embeddings of rows that changed hands are copied.
 */
class RowBatch {
  private batch: UnetBatch | undefined;
  private capacity = 0;
  /** The call that is under way: the next one waits until its rows may be overwritten. */
  private running: Promise<void> = Promise.resolve();
  /** The embedding that lies in each row of the batch. */
  private embeddings: (Float32Array | undefined)[] = [];

  constructor(
    private readonly unet: Unet,
    private readonly shape: LatentShape,
    private readonly tokens: number,
    private readonly hiddenWidth: number,
  ) {}

  /**
   * Moves each picture on by one step. If the U-Net fails, none has moved; if a scheduler fails,
   * that picture is spoilt.
   */
  step(trajectories: readonly Trajectory[]): Promise<void> {
    const step = this.running.then(() => this.advance(trajectories));
    this.running = step.catch(() => undefined);
    return step;
  }

  private async advance(trajectories: readonly Trajectory[]): Promise<void> {
    const rows = trajectories.reduce((sum, trajectory) => sum + trajectory.rows, 0);
    const batch = this.batchOf(rows);
    const { sample, timestep } = batch;
    this.placeEmbeddings(batch, trajectories);
    let row = 0;
    for (const trajectory of trajectories) {
      trajectory.gather(sample.values, row);
      if (this.unet.takesTimestepPerRow) timestep.values.fill(trajectory.timestep, row, row + trajectory.rows);
      else timestep.values.fill(trajectory.timestep);
      this.unet.writeGuidance(batch, row, trajectory.rows, trajectory.guidanceScale);
      row += trajectory.rows;
    }
    sample.commit();
    timestep.commit();
    batch.guidance?.commit();
    const prediction = await this.unet.predict(batch, rows);
    row = 0;
    for (const trajectory of trajectories) {
      trajectory.scatter(prediction, row);
      row += trajectory.rows;
    }
  }

  /** Inputs with room for these rows: for the next power of two, so that one more picture seldom needs new inputs. */
  private batchOf(rows: number): UnetBatch {
    const capacity = powerOfTwoFrom(rows);
    if (this.batch && capacity <= this.capacity && this.capacity <= 4 * capacity) return this.batch;
    this.batch = this.unet.createBatch(capacity, this.shape, this.tokens, this.hiddenWidth);
    this.capacity = capacity;
    this.embeddings = [];
    return this.batch;
  }

  private placeEmbeddings({ promptEmbeds }: UnetBatch, trajectories: readonly Trajectory[]): void {
    let hasChanged = false;
    for (const [row, embedding] of trajectories.flatMap(({ prompt }) => prompt.rows).entries()) {
      if (this.embeddings[row] === embedding) continue;
      promptEmbeds.values.set(embedding, row * embedding.length);
      this.embeddings[row] = embedding;
      hasChanged = true;
    }
    if (hasChanged) promptEmbeds.commit();
  }
}
