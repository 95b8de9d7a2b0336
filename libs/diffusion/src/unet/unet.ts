import type { Device } from '../model/device';
import type { Tensor } from 'onnxruntime-node';
import { cures, ModelFolderError, OutOfMemoryError } from '../errors';
import type { GraphSession } from '../model/model-session';
import { InputBuffer, toFloat32 } from '../tensor/input-buffer';
import { areFinite, type LatentShape, notFinite } from '../tensor/planes';
import { unetValues } from '../model/graph-values';

/**
 * Whether calls of a U-Net have 1, 2, 4, 8 … rows only, the last ones unused. A GPU looks for the fastest kernels anew
 * for each number of rows that it has not seen, which takes longer than the unused rows; on the CPU each row takes its
 * time.
 */
export const hasCallsInPowersOfTwo = (device: Device): boolean => device !== 'cpu';

/** The least power of two that is no less than so many rows. */
export const powerOfTwoFrom = (rows: number): number => 2 ** Math.ceil(Math.log2(rows));

/** The largest power of two that is no more than so many rows, at least one. */
export const powerOfTwoUpTo = (rows: number): number => 2 ** Math.floor(Math.log2(rows));

/** The inputs of a call with several rows, allocated once and written before every call. */
export interface UnetBatch {
  /** [rows, channels, height, width] */
  sample: InputBuffer;
  /** One number for all rows, or one per row if the graph takes that. */
  timestep: InputBuffer;
  /** [rows, tokens, hidden width] */
  promptEmbeds: InputBuffer;
  /** [rows, width]: the embedded guidance scale, if the U-Net was distilled to take it. */
  guidance?: InputBuffer;
}

/** What is known of a U-Net beside its graph. */
interface UnetOptions {
  /** Of a distilled U-Net's guidance embedding (`time_cond_proj_dim`), for graphs that leave it free. */
  guidanceWidth?: number;
  /** As `hasCallsInPowersOfTwo` says of its device. */
  inPowersOfTwo?: boolean;
}

/**
 * How far a row may be from the same row by itself, as a part of what the other timestep changes: more than float16
 * rounds, and much less than a row that was given the wrong timestep.
 */
const timestepTolerance = 0.1;

/** The conditional U-Net: predicts noise (or velocity) for rows of latents, each with its timestep and its prompt. */
export class Unet {
  readonly values: ReturnType<typeof unetValues>;
  private isTimestepPerRow: boolean;

  /** @throws ModelFolderError if the graph is not the U-Net of a Stable Diffusion 1.x or 2.x */
  constructor(
    private readonly session: GraphSession,
    private readonly options: UnetOptions = {},
  ) {
    this.values = unetValues(session, options.guidanceWidth);
    const { timestep, fixedRows } = this.values;
    const [timesteps] = timestep.shape;
    this.isTimestepPerRow = timesteps !== undefined && (typeof timesteps === 'string' || timesteps === fixedRows);
  }

  /** This U-Net with its graph loaded elsewhere. */
  over(session: GraphSession): Unet {
    const unet = new Unet(session, this.options);
    unet.isTimestepPerRow = this.isTimestepPerRow;
    return unet;
  }

  /**
   * Rows that a call is made with for `rows` of them. A graph with a fixed number is called with
   * that until all are done.
   */
  rowsOfCall(rows: number): number {
    return this.values.fixedRows ?? (this.options.inPowersOfTwo ? powerOfTwoFrom(rows) : rows);
  }

  /** Whether rows of one call may have different timesteps: by the graph's declaration, and after `probe` in fact. */
  get takesTimestepPerRow(): boolean {
    return this.isTimestepPerRow;
  }

  /**
   * Calls the graph once, and, if it declares a timestep per row, twice more: two rows with different timesteps are
   * compared with each of them by itself, because a graph may declare what it does not do.
   * @param promptEmbeds [tokens, hidden width], of any text
   * @throws ModelFolderError if its prediction has another shape than its sample, or is not finite for a
   * small sample nor for none
   */
  async probe(shape: LatentShape, promptEmbeds: Float32Array, hiddenWidth: number): Promise<void> {
    const size = shape[0] * shape[1] * shape[2];
    const [early, late] = [900, 100];
    const predict = async (timesteps: number[], amplitude = 1): Promise<Float32Array> => {
      const rows = timesteps.length;
      const batch = this.createBatch(rows, shape, promptEmbeds.length / hiddenWidth, hiddenWidth);
      batch.sample.values.forEach((_, i, values) => (values[i] = amplitude * Math.sin(i % size)));
      batch.timestep.values.set(timesteps.slice(0, batch.timestep.values.length));
      for (let row = 0; row < rows; row++) batch.promptEmbeds.values.set(promptEmbeds, row * promptEmbeds.length);
      for (const input of [batch.sample, batch.timestep, batch.promptEmbeds]) input.commit();
      const prediction = await this.predict(batch, rows);
      if (prediction.length !== batch.sample.values.length)
        throw new ModelFolderError(
          this.session.file,
          'gives a prediction of another shape than its sample',
          cures.exportAgain,
        );
      return prediction;
    };
    const first = await predict([early]);
    // In half precision a sound model may overflow for one input and not for another, so it gets a
    // second that is easier.
    if (!areFinite(first) && !areFinite(await predict([late], 0)))
      throw new ModelFolderError(this.session.file, notFinite, cures.otherWeights);
    if (!this.isTimestepPerRow) return;
    try {
      const [second, both] = [await predict([late]), await predict([early, late])];
      const tolerance = timestepTolerance * distance(first.subarray(0, size), second.subarray(0, size));
      this.isTimestepPerRow =
        distance(both.subarray(0, size), first) <= tolerance &&
        distance(both.subarray(size, 2 * size), second) <= tolerance;
    } catch (error) {
      if (error instanceof OutOfMemoryError) throw error;
      this.isTimestepPerRow = false;
    }
  }

  /** Whether it takes the guidance scale as an input: then a picture takes one row, and no negative prompt. */
  get embedsGuidance(): boolean {
    return this.values.guidance !== undefined;
  }

  /** Writes the guidance scale of `count` rows from `first` on, if the U-Net takes it. The caller commits. */
  writeGuidance({ guidance }: UnetBatch, first: number, count: number, guidanceScale: number): void {
    if (!guidance) return;
    const embedding = guidanceEmbedding(guidanceScale, this.values.guidanceWidth);
    for (let row = first; row < first + count; row++) guidance.values.set(embedding, row * embedding.length);
  }

  /** Allocates the inputs of calls: at least this many rows, and as many more as the last call takes. */
  createBatch(atLeast: number, shape: LatentShape, tokens: number, hiddenWidth: number): UnetBatch {
    const { sample, timestep, prompt, guidance, guidanceWidth } = this.values;
    const rowsOfCall = this.rowsOfCall(atLeast);
    const rows = Math.ceil(atLeast / rowsOfCall) * rowsOfCall;
    const [steps] = timestep.shape;
    const timesteps = this.takesTimestepPerRow ? rows : typeof steps === 'number' ? steps : 1;
    return {
      sample: new InputBuffer(sample.type, [rows, ...shape]),
      timestep: new InputBuffer(timestep.type, timestep.shape.length === 0 ? [] : [timesteps]),
      promptEmbeds: new InputBuffer(prompt.type, [rows, tokens, hiddenWidth]),
      ...(guidance && { guidance: new InputBuffer(guidance.type, [rows, guidanceWidth]) }),
    };
  }

  /**
   * The prediction [rows, channels, height, width] for the first `rows` rows of what was written into the batch and
   * committed. A graph with a fixed number of rows is called until all are done.
   */
  async predict({ sample, timestep, promptEmbeds, guidance }: UnetBatch, rows: number): Promise<Float32Array> {
    const rowsOfCall = this.rowsOfCall(rows);
    const call = (first: number): Promise<Float32Array> =>
      this.call(
        sample.rows(first, rowsOfCall),
        this.takesTimestepPerRow ? timestep.rows(first, rowsOfCall) : timestep.tensor,
        promptEmbeds.rows(first, rowsOfCall),
        guidance?.rows(first, rowsOfCall),
      );
    if (rowsOfCall >= rows) return call(0);
    const calls = Math.ceil(rows / rowsOfCall);
    const prediction = new Float32Array((sample.values.length / sample.tensor.dims[0]) * calls * rowsOfCall);
    for (let i = 0; i < calls; i++) {
      const part = await call(i * rowsOfCall);
      prediction.set(part, i * part.length);
    }
    return prediction;
  }

  private async call(sample: Tensor, timestep: Tensor, promptEmbeds: Tensor, guidance?: Tensor): Promise<Float32Array> {
    const feeds: Record<string, Tensor> = { sample, timestep, encoder_hidden_states: promptEmbeds };
    if (guidance) feeds.timestep_cond = guidance;
    return toFloat32(await this.session.run(feeds, this.values.output.name));
  }
}

/** The largest difference of two values in the same place. */
function distance(one: Float32Array, other: Float32Array): number {
  return one.reduce(
    (largest, value, i) => (i < other.length ? Math.max(largest, Math.abs(value - other[i])) : largest),
    0,
  );
}

const { fround } = Math;

/**
 * The guidance scale as a distilled U-Net takes it (`timestep_cond`): sines and cosines of falling
 * frequencies, in float32.
 * Source: `get_guidance_scale_embedding` of diffusers' LatentConsistencyModelPipeline, which embeds the scale minus
 * one; Luo et al., "Latent Consistency Models" (2023), section 4.2.
 * @param width an even number of values, or an odd one whose last value is 0
 */
export function guidanceEmbedding(guidanceScale: number, width: number): Float32Array {
  const half = Math.floor(width / 2);
  const values = new Float32Array(width);
  const scale = fround(fround(guidanceScale - 1) * 1000);
  const falling = fround(fround(Math.log(10_000)) / (half - 1));
  for (let i = 0; i < half; i++) {
    const angle = fround(scale * fround(Math.exp(fround(-falling * i))));
    values[i] = Math.sin(angle);
    values[half + i] = Math.cos(angle);
  }
  return values;
}
