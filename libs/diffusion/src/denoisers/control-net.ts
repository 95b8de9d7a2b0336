import { noAdapters } from '../adapters/row-adapters';
import { controlNetModel } from '../architectures/control-net-model';
import type { UNet2DConditionConfig } from '../architectures/unet-2d-condition-model';
import { cures, ModelFolderError, RequestError } from '../errors';
import { isGraphFault } from '../sessions/graph-fault';
import type { GraphSession, LoadOptions } from '../sessions/model-session';
import { openPart, type PartFiles } from '../sessions/part-graph';
import { float32, floatsOf, packed, type Tensors } from '../sessions/tensor';
import { areFinite, type LatentShape, notFinite } from '../tensor/planes';
import { type ControlledRow, lengthOf } from './denoiser';
import { conditioningFeeds } from './unet';

/** A ControlNet before it is loaded. */
export interface ControlFiles extends PartFiles {
  family: { name: string; title: string };
  /** Values of its `config.json`; without one, those that no shape tells are as in the model that it guides. */
  config: UNet2DConditionConfig | undefined;
  /** Those of its family. */
  usualConfig: UNet2DConditionConfig;
}

interface GuidedModel {
  family: { name: string; title: string };
  /** With the values of its `config.json`, if it is a U-Net. */
  denoiser: PartFiles & { config?: UNet2DConditionConfig };
}

/** Edge of the latents that it is tried with, as a model is. */
const trialEdge = 8;

/** A loaded ControlNet: it gives what a U-Net adds to its way down. It may guide every model that it fits. */
export class ControlNet {
  /** Pixels of its maps' edge for one of the latents' edge. */
  readonly scaleFactor: number;

  private constructor(
    private readonly files: ControlFiles,
    private readonly session: GraphSession,
  ) {
    const blocks = [...files.tensors.keys()].filter((name) => /_cond_embedding\.blocks\.\d+\.weight$/.test(name));
    this.scaleFactor = 2 ** (blocks.length / 2);
  }

  /**
   * @param model one that it is to guide: what neither a shape nor a `config.json` tells is as in that
   * @throws RequestError if it does not fit the model
   * @throws ModelFolderError, OutOfMemoryError as `ModelSession.open` does
   */
  static async open(files: ControlFiles, model: GuidedModel, options: LoadOptions): Promise<ControlNet> {
    const problem = problemOfFit(files, model);
    if (problem !== undefined) throw new RequestError(problem);
    return ControlNet.openWith(files, files.config ?? model.denoiser.config ?? files.usualConfig, options);
  }

  /**
   * Loads it without a model, calls it once on a small input, and lets it go.
   * @throws ModelFolderError if it cannot be used
   */
  static async tryOut(files: ControlFiles, options: LoadOptions): Promise<void> {
    const net = await ControlNet.openWith(files, files.config ?? files.usualConfig, options);
    try {
      const { inputs } = net.session;
      const shape: LatentShape = [lengthOf(inputs, 'sample', 1)!, trialEdge, trialEdge];
      const blank = (...dims: number[]) =>
        float32(new Float32Array(dims.reduce((size, length) => size * length)), dims);
      const conditioning = {
        encoder_hidden_states: blank(77, lengthOf(inputs, 'encoder_hidden_states', 2)!),
        text_embeds: blank(lengthOf(inputs, 'text_embeds', 1) ?? 0),
      };
      const sample = new Float32Array(shape[0] * trialEdge ** 2);
      const row = { sample, timestep: 1, conditioning, guidanceScale: 1, adapters: noAdapters };
      const map = new Float32Array(3 * (trialEdge * net.scaleFactor) ** 2);
      const given = await net.residuals([{ row, map, scale: 1 }], shape);
      const isFinite = Object.values(given).every((tensor) => areFinite(floatsOf(tensor)));
      if (!isFinite) throw new ModelFolderError(files.file, notFinite, cures.otherWeights);
    } catch (error) {
      if (!isGraphFault(error)) throw error;
      throw new ModelFolderError(files.file, `cannot be run: ${(error as Error).message}`, cures.installAgain);
    } finally {
      await net.release();
    }
  }

  private static async openWith(
    files: ControlFiles,
    config: UNet2DConditionConfig,
    options: LoadOptions,
  ): Promise<ControlNet> {
    const build = (own: Parameters<typeof controlNetModel>[0]) => controlNetModel(own, config);
    return new ControlNet(files, await openPart(files, build, options, { onCuda: 'float16', isAdapted: false }));
  }

  get spent(): GraphSession['spent'] {
    return this.session.spent;
  }

  /** Why it cannot guide a model, in one sentence; undefined if it can. */
  problemFor(model: GuidedModel): string | undefined {
    return problemOfFit(this.files, model);
  }

  /** Values to add for each of these rows, side by side, by the names of the U-Net's inputs. */
  residuals(rows: readonly ControlledRow[], shape: LatentShape): Promise<Tensors> {
    const [channels, height, width] = shape;
    const size = channels * height * width;
    return this.session.run({
      // The channels behind the latents' are for the U-Net alone.
      sample: packed(rows, ({ row }) => row.sample.subarray(0, size), shape),
      timestep: packed(rows, ({ row }) => [row.timestep], []),
      ...conditioningFeeds(
        rows.map(({ row }) => row),
        shape,
        this.scaleFactor,
        this.session.inputs,
      ),
      controlnet_cond: packed(rows, (row) => row.map, [3, height * this.scaleFactor, width * this.scaleFactor]),
      conditioning_scale: packed(rows, ({ scale }) => [scale], []),
    });
  }

  release(): Promise<void> {
    return this.session.release();
  }
}

/**
 * Why a ControlNet cannot guide a model, in one sentence; undefined if it can. It is a copy of the U-Net's way down, so
 * each of its layers has the shape of that layer in the U-Net.
 */
export function problemOfFit(
  { tensors, family }: ControlFiles,
  { family: guided, denoiser }: GuidedModel,
): string | undefined {
  if (family.name !== guided.name)
    return `This ControlNet is for ${family.title}, and the model is of ${guided.title}.`;
  const copied = [...tensors].filter(([name]) => !name.startsWith('controlnet_') && name !== 'conv_in.weight');
  const isFit = copied.every(([name, { shape }]) => denoiser.tensors.get(name)?.shape.join() === shape.join());
  return isFit ? undefined : 'The layers of this ControlNet have other sizes than those of the model.';
}
