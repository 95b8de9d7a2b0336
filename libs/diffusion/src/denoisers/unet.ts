import { unet2DConditionModel, type UNet2DConditionConfig } from '../architectures/unet-2d-condition-model';
import { cures, ModelFolderError } from '../errors';
import type { BuiltGraph, ModuleOptions } from '../graph/module';
import type { Device, Provider } from '../sessions/device';
import type { GraphSession, LoadOptions } from '../sessions/model-session';
import { openPart } from '../sessions/part-graph';
import { float32, floatsOf, packed, type Tensors } from '../sessions/tensor';
import type { LatentShape } from '../tensor/planes';
import type { NamedTensors } from '../weights/named-tensor';
import { ControlResiduals } from './control-residuals';
import { type DenoiserFiles, type DenoiserRow, type DenoiserTraining, lengthOf, type ModelKind } from './denoiser';
import { firstRows, SessionDenoiser } from './session-denoiser';

/**
 * Positions of the latents from which on rows may share an adapter's factors. In smaller ones the deepest level may be
 * of a single token, and a product of such rows has other bits than that of one.
 */
const leastShared = 256;

/*
 * Factors of the estimates. A graph does not tell which values are in memory at the same time, so they count feature
 * maps of the widest level; for the bundled model they are one to six times what is measured
 * (`test/slow/inference-memory.spec.ts`).
 */
/** Feature maps of the largest level that are alive at once, skip connections included. */
const liveMaps = 40;
/** Attention scores for each pair of positions of the latents, on devices without fused attention. */
const liveScores = 16;

/** The U-Net of a model before it is loaded. */
export class UnetFiles implements DenoiserFiles {
  readonly part = 'unet';
  readonly title = 'U-Net';
  readonly kind: ModelKind;
  readonly guidance: DenoiserFiles['guidance'];

  /** @param scaleFactor pixels of the picture's edge for one of the latents' */
  constructor(
    readonly tensors: NamedTensors,
    readonly file: string,
    readonly config: UNet2DConditionConfig,
    readonly scaleFactor: number,
    readonly nativeSize?: number,
  ) {
    this.kind = modelKindOf(tensors, file);
    this.guidance = tensors.has('time_embedding.cond_proj.weight') ? 'input' : 'rows';
  }

  rowBytes({ height, width }: { height: number; width: number }, provider: Provider): number {
    const [positions, channels] = [height * width, this.tensors.get('conv_in.weight')?.shape[0] ?? 320];
    const scores = provider === 'webgpu' ? liveScores * positions ** 2 : 0;
    return (liveMaps * channels * positions + scores) * Float32Array.BYTES_PER_ELEMENT;
  }

  /** The graph for drawing, which takes what ControlNets give. */
  build = (options: ModuleOptions): BuiltGraph => unet2DConditionModel(options, this.config, true);
  readonly graphs = [this.build];

  readonly training: DenoiserTraining = {
    build: (options) => unet2DConditionModel(options, this.config),
    layers: {
      attention: /\.(?:to_[qkv]|to_out\.0)$/,
      all: /\.(?:to_[qkv]|to_out\.0|proj_in|proj_out|ff\.net\.0\.proj|ff\.net\.2|conv1|conv2)$/,
    },
    // A residual block, an attention, a transformer block of one, or a change of size.
    blocks: /^(?:(?:down|up)_blocks\.\d+|mid_block)\.\w+\.\d+(?:\.transformer_blocks\.\d+)?/,
    sign: 1,
    hasOwnCalls: false,
    axesOf: () => ({}),
    feedsOf: (timesteps, shape) => ({
      timestep: float32(Float32Array.from(timesteps)),
      time_ids: packed(timesteps, () => timeIdsOf(shape, this.scaleFactor), [6]),
    }),
  };

  async open(options: LoadOptions): Promise<Unet> {
    const session = await openPart(this, this.build, options, { onCuda: 'float16', isAdapted: true });
    return new Unet(session, options.device, this.scaleFactor);
  }
}

function modelKindOf(tensors: NamedTensors, file: string): ModelKind {
  const kinds: Readonly<Record<number, ModelKind>> = { 4: 'text-to-image', 8: 'instruct-pix2pix', 9: 'inpainting' };
  const [out, into] = [tensors.get('conv_out.weight')?.shape[0] ?? 4, tensors.get('conv_in.weight')?.shape[1] ?? 4];
  // Other autoencoders than those of Stable Diffusion have other numbers of channels.
  const kind = into === out ? 'text-to-image' : kinds[into];
  if (!kind) throw new ModelFolderError(file, `takes ${into} channels and gives ${out}`, cures.otherModel);
  return kind;
}

/**
 * Sizes that XL is told: height and width of the original, top and left of the crop, height and width of the picture.
 */
export function timeIdsOf([, rows, columns]: LatentShape, scaleFactor: number): number[] {
  const [height, width] = [rows * scaleFactor, columns * scaleFactor];
  return [height, width, 0, 0, height, width];
}

/** The U-Net: predicts what a row's noise is. */
export class Unet extends SessionDenoiser {
  private readonly residuals: ControlResiduals;

  constructor(
    session: GraphSession,
    device: Device,
    private readonly scaleFactor: number,
  ) {
    super(session, device);
    this.residuals = new ControlResiduals(session.inputs);
  }

  async predict(rows: readonly DenoiserRow[], shape: LatentShape): Promise<Float32Array[]> {
    const [, height, width] = shape;
    const all = this.filled(rows);
    const guidanceWidth = lengthOf(this.inputs, 'timestep_cond', 1);
    const residuals = await this.residuals.feeds(all, shape);
    const results = await this.session.run({
      sample: packed(all, ({ sample }) => sample, [lengthOf(this.inputs, 'sample', 1)!, height, width]),
      timestep: packed(all, ({ timestep }) => [timestep], []),
      ...conditioningFeeds(all, shape, this.scaleFactor, this.inputs),
      ...(guidanceWidth !== undefined && {
        timestep_cond: packed(all, ({ guidanceScale }) => guidanceEmbedding(guidanceScale, guidanceWidth), [
          guidanceWidth,
        ]),
      }),
      ...this.adapterFeeds(all, height * width >= leastShared),
      ...residuals,
    });
    return firstRows(floatsOf(results.out_sample), rows.length, all.length);
  }
}

/** The inputs of a U-Net or ControlNet that say what its rows show: those of the texts, and of XL the sizes. */
export function conditioningFeeds(
  rows: readonly Pick<DenoiserRow, 'conditioning'>[],
  shape: LatentShape,
  scaleFactor: number,
  inputs: GraphSession['inputs'],
): Tensors {
  const feeds: Record<string, Tensors[string]> = {};
  for (const [name, { dims }] of Object.entries(rows[0].conditioning))
    if (lengthOf(inputs, name, 0) !== undefined)
      feeds[name] = packed(rows, ({ conditioning }) => floatsOf(conditioning[name]), dims);
  if (lengthOf(inputs, 'time_ids', 1) !== undefined)
    feeds.time_ids = packed(rows, () => timeIdsOf(shape, scaleFactor), [6]);
  return feeds;
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
