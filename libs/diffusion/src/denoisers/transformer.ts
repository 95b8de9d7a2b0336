import { LRUCache } from 'lru-cache';
import type { LatentSize, RotaryPositions } from '../architectures/rotary';
import type { Device, Provider } from '../sessions/device';
import type { GraphSession, LoadOptions } from '../sessions/model-session';
import { type BuildGraph, openPart } from '../sessions/part-graph';
import { bool, float32, floatsOf, packed, type Tensor, type Tensors } from '../sessions/tensor';
import type { LatentShape } from '../tensor/planes';
import type { NamedTensors } from '../weights/named-tensor';
import type { DenoiserFiles, DenoiserRow, DenoiserTraining } from './denoiser';
import { firstRows, SessionDenoiser } from './session-denoiser';

/** In what diffusion transformers differ. */
export interface TransformerUse {
  build: BuildGraph;
  /** Angles of all positions, in the order of the transformer's tokens. */
  positionsOf: (textTokens: number, size: LatentSize, references: readonly LatentSize[]) => RotaryPositions;
  /** Time as it is told of it, for a timestep from 1000 to 0. */
  timeOf: (timestep: number) => number;
  /** -1 where it predicts the velocity from noise to picture, and the schedulers want the other way. */
  sign: 1 | -1;
  patch: number;
  takesReferences: boolean;
  /** Most tokens of a text, which stand beside the picture's. */
  textTokens: number;
  /** Values of the widest layer for each token. */
  tokenWidth: number;
  /** Absent where it is not trained. */
  training?: Pick<DenoiserTraining, 'layers' | 'blocks'>;
}

/** Values of a token in memory at once, as a multiple of the widest layer. */
const liveValues = 3;
/** Sizes of pictures whose positions are kept: 2 MB each at 1024 x 1024. */
const keptPositions = 8;

/** A diffusion transformer of a model before it is loaded. */
export class TransformerFiles implements DenoiserFiles {
  readonly part = 'transformer';
  readonly title = 'transformer';
  readonly kind = 'text-to-image';

  constructor(
    readonly tensors: NamedTensors,
    readonly file: string,
    readonly use: TransformerUse,
    readonly guidance: 'rows' | 'none',
  ) {}

  get graphs(): readonly BuildGraph[] {
    return [this.use.build];
  }

  get patch(): number {
    return this.use.patch;
  }

  get takesReferences(): boolean {
    return this.use.takesReferences;
  }

  get training(): DenoiserTraining | undefined {
    const { build, sign, takesReferences, timeOf, training, positionsOf } = this.use;
    if (!training) return undefined;
    return {
      ...training,
      ...{ build, sign, hasOwnCalls: true },
      axesOf: ({ batch, tokens, ...size }) => ({
        ...{ rows: batch, text: tokens, 'looked at': 0 },
        positions: positionsOf(tokens, size, []).positions,
      }),
      feedsOf: (timesteps, shape, tokens) => ({
        timestep: float32(Float32Array.from(timesteps, timeOf)),
        ...(takesReferences && { references: float32(new Float32Array(0), [timesteps.length, 0, shape[0]]) }),
        ...rotaryFeeds(positionsOf(tokens, sizeOf(shape), [])),
      }),
    };
  }

  rowBytes({ height, width }: { height: number; width: number }, _provider: Provider, referencePositions = 0): number {
    const tokens = (height * width + referencePositions) / this.use.patch ** 2 + this.use.textTokens;
    return liveValues * this.use.tokenWidth * tokens * Float32Array.BYTES_PER_ELEMENT;
  }

  async open(options: LoadOptions): Promise<Transformer> {
    const session = await openPart(this, this.use.build, options, { onCuda: 'bfloat16', isAdapted: true });
    return new Transformer(session, options.device, this.use);
  }
}

/** A diffusion transformer: predicts the velocity of rows, which may differ in time and in Fine-Tunes. */
export class Transformer extends SessionDenoiser {
  private readonly positions = new LRUCache<string, Tensors>({ max: keptPositions });

  constructor(
    session: GraphSession,
    device: Device,
    private readonly use: TransformerUse,
  ) {
    super(session, device);
  }

  /** Rows whose positions are equal share a call: those of one length of text, and of references of one size. */
  async predict(rows: readonly DenoiserRow[], shape: LatentShape): Promise<Float32Array[]> {
    const predicted = new Map<DenoiserRow, Float32Array>();
    for (const layout of new Set(rows.map(layoutOf))) {
      const alike = rows.filter((row) => layoutOf(row) === layout);
      const values = await this.predictAlike(alike, shape, layout);
      for (const [i, row] of alike.entries()) predicted.set(row, values[i]);
    }
    return rows.map((row) => predicted.get(row)!);
  }

  private async predictAlike(
    rows: readonly DenoiserRow[],
    shape: LatentShape,
    layout: string,
  ): Promise<Float32Array[]> {
    const all = this.filled(rows);
    const { out_sample: output } = await this.session.run({
      sample: packed(all, ({ sample }) => sample, shape),
      timestep: packed(all, ({ timestep }) => [this.use.timeOf(timestep)], []),
      ...Object.fromEntries(
        Object.keys(all[0].conditioning).map((name) => [
          name,
          stacked(all.map(({ conditioning }) => conditioning[name])),
        ]),
      ),
      ...(this.use.takesReferences && { references: referencesOf(all, shape[0]) }),
      ...this.positionFeeds(all[0], shape, layout),
      ...this.adapterFeeds(all),
    });
    const values = floatsOf(output);
    const signed = this.use.sign === 1 ? values : values.map((value) => -value);
    return firstRows(signed, rows.length, all.length);
  }

  private positionFeeds(row: DenoiserRow, shape: LatentShape, layout: string): Tensors {
    const key = `${sizeKey(shape)} ${layout}`;
    const known = this.positions.get(key);
    if (known) return known;
    const references = row.references?.map((reference) => sizeOf(reference.shape)) ?? [];
    const feeds = rotaryFeeds(this.use.positionsOf(textLengthOf(row), sizeOf(shape), references));
    this.positions.set(key, feeds);
    return feeds;
  }
}

function rotaryFeeds({ cos, sin, positions }: RotaryPositions): Tensors {
  const dims = [positions, cos.length / positions];
  return { rotary_cos: float32(cos, dims), rotary_sin: float32(sin, dims) };
}

const sizeOf = ([, height, width]: LatentShape): LatentSize => ({ height, width });
const sizeKey = ([, height, width]: LatentShape): string => `${height}x${width}`;

/** Equal for rows with equal positions behind the picture's. */
const layoutOf = (row: DenoiserRow): string =>
  [textLengthOf(row), ...(row.references ?? []).map(({ shape }) => sizeKey(shape))].join(' ');

/** The references of rows as tokens, one after the other: [rows, positions, channels]. */
function referencesOf(rows: readonly DenoiserRow[], channels: number): Tensor {
  const all = rows.flatMap(({ references = [] }) => references.map(({ latents }) => tokensOf(latents, channels)));
  const values = new Float32Array(all.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const tokens of all) {
    values.set(tokens, at);
    at += tokens.length;
  }
  return float32(values, [rows.length, values.length / rows.length / channels, channels]);
}

/** [channels, positions] to [positions, channels]. */
function tokensOf(latents: Float32Array, channels: number): Float32Array {
  const positions = latents.length / channels;
  return latents.map((_, i) => latents[(i % channels) * positions + Math.floor(i / channels)]);
}

const textLengthOf = ({ conditioning }: DenoiserRow): number => conditioning.encoder_hidden_states.dims[0];

/** Tensors of one shape and type as the rows of one. */
function stacked(rows: readonly Tensor[]): Tensor {
  const [{ type, dims }] = rows;
  if (type !== 'bool') return packed(rows, floatsOf, dims);
  const all = rows.map(({ data }) => data as Uint8Array);
  const values = new Uint8Array(rows.length * all[0].length);
  for (const [i, row] of all.entries()) values.set(row, i * row.length);
  return bool(values, [rows.length, ...dims]);
}
