import type { LatentShape } from '../tensor/latent-shape';
import { powerOfTwoFrom } from '../unet/rows-of-call';
import type { Unet, UnetBatch } from '../unet/unet';
import type { Trajectory } from './trajectory';

/**
 * Pictures of one size and prompt length that share calls of the U-Net, whoever asked for them. They may join and leave
 * between two steps: only the embeddings of rows that changed hands are copied.
 */
export class RowBatch {
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
