import { AdapterInputs, type LayerAdapters } from '../pipelines/row-adapters';
import { type Device, providerOf } from '../sessions/device';
import type { GraphSession, Tensors } from '../sessions/model-session';
import type { LatentShape } from '../tensor/planes';
import { ControlResiduals } from './control-residuals';
import { packed, type UnetRow } from './unet-row';

/** The largest power of two that is at most `rows`. */
export function powerOfTwoUpTo(rows: number): number {
  return 2 ** Math.floor(Math.log2(Math.max(1, rows)));
}

/** The smallest power of two that is at least `rows`. */
export function powerOfTwoFrom(rows: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, rows)));
}

/** A GPU plans each number of rows anew, so that there calls have a power of two of them. */
export function hasCallsInPowersOfTwo(device: Device): boolean {
  return providerOf(device) !== 'cpu';
}

/**
 * Positions of the latents from which on rows may share an adapter's factors. In smaller ones the deepest level may be
 * of a single token, and a product of such rows has other bits than that of one.
 */
const leastShared = 256;

/** The U-Net: predicts what a row's noise is. Rows may be at different timesteps, and of different Fine-Tunes. */
export class Unet {
  private readonly adapterInputs: AdapterInputs;
  private readonly residuals: ControlResiduals;
  /** Channels that it takes. */
  readonly inChannels: number;
  /** Width of an embedding. */
  readonly hiddenWidth: number;
  private readonly guidanceWidth: number | undefined;
  private readonly pooledWidth: number | undefined;
  /** The adapters of the last call: the same rows mostly come again. */
  private last: { rows: readonly LayerAdapters[]; feeds: Tensors } | undefined;

  constructor(
    private readonly session: GraphSession,
    private readonly device: Device,
  ) {
    this.adapterInputs = new AdapterInputs(session.inputs);
    this.residuals = new ControlResiduals(session.inputs);
    const axis = (name: string, at: number): number | undefined => {
      const length = session.inputs.find((input) => input.name === name)?.shape[at];
      return length === undefined ? undefined : Number(length);
    };
    this.inChannels = axis('sample', 1)!;
    this.hiddenWidth = axis('encoder_hidden_states', 2)!;
    this.guidanceWidth = axis('timestep_cond', 1);
    this.pooledWidth = axis('text_embeds', 1);
  }

  /** Whether it takes the guidance scale as an input: then a picture takes one row, and no negative prompt. */
  get embedsGuidance(): boolean {
    return this.guidanceWidth !== undefined;
  }

  /** Rows that a call has for `rows` of pictures. */
  rowsOfCall(rows: number): number {
    return hasCallsInPowersOfTwo(this.device) ? powerOfTwoFrom(rows) : rows;
  }

  /** The prediction of each row, [channels, height, width], for rows of one size, length of text and rank. */
  async predict(rows: readonly UnetRow[], shape: LatentShape): Promise<Float32Array[]> {
    const [, height, width] = shape;
    const count = this.rowsOfCall(rows.length);
    // Rows that only fill a call up are the last one again.
    const all = Array.from({ length: count }, (_, i) => rows[Math.min(i, rows.length - 1)]);
    const tokens = rows[0].embedding.length / this.hiddenWidth;
    const { guidanceWidth, pooledWidth } = this;
    const residuals = await this.residuals.feeds(all, shape);
    const results = await this.session.run({
      sample: packed(all, ({ sample }) => sample, [this.inChannels, height, width]),
      timestep: packed(all, ({ timestep }) => [timestep], []),
      encoder_hidden_states: packed(all, ({ embedding }) => embedding, [tokens, this.hiddenWidth]),
      ...(guidanceWidth !== undefined && {
        timestep_cond: packed(all, ({ guidanceScale }) => guidanceEmbedding(guidanceScale, guidanceWidth), [
          guidanceWidth,
        ]),
      }),
      ...(pooledWidth !== undefined && {
        text_embeds: packed(all, ({ pooled }) => pooled!, [pooledWidth]),
        time_ids: packed(all, ({ timeIds }) => timeIds!, [6]),
      }),
      ...this.adapterFeeds(
        all.map(({ adapters }) => adapters),
        height * width >= leastShared,
      ),
      ...residuals,
    });
    const values = results.out_sample.data as Float32Array;
    const size = values.length / count;
    return rows.map((_, row) => values.subarray(row * size, (row + 1) * size));
  }

  private adapterFeeds(rows: readonly LayerAdapters[], isShared: boolean): Tensors {
    const isSame = this.last?.rows.length === rows.length && rows.every((row, i) => row === this.last!.rows[i]);
    if (!isSame) this.last = { rows, feeds: this.adapterInputs.feeds(rows, isShared) };
    return this.last!.feeds;
  }
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
