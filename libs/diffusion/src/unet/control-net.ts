import { Tensor } from '../sessions/onnx-runtime';
import type { UNet2DConditionConfig } from '../architectures/unet-2d-condition-model';
import { cures, ModelFolderError, RequestError } from '../errors';
import type { ControlFolder } from '../families/control-folder';
import type { ModelFolder } from '../families/model-folder';
import { controlGraphOf } from '../pipelines/model-graphs';
import { noAdapters } from '../pipelines/row-adapters';
import { isGraphFault } from '../sessions/graph-fault';
import { type GraphSession, type LoadOptions, ModelSession, type Tensors } from '../sessions/model-session';
import { areFinite, type LatentShape, notFinite } from '../tensor/planes';
import { packed, type RowControl, type UnetRow } from './unet-row';

/** A row as the U-Net sees it, and what it follows. */
export interface ControlledRow extends Pick<RowControl, 'map' | 'scale'> {
  row: UnetRow;
}

/** Edge of the latents that it is tried with, as a model is. */
const trialEdge = 8;

/** A loaded ControlNet: it gives what a U-Net adds to its way down. It may guide every model that it fits. */
export class ControlNet {
  /** Pixels of its maps' edge for one of the latents' edge. */
  readonly scaleFactor: number;

  private constructor(
    private readonly folder: ControlFolder,
    private readonly session: GraphSession,
  ) {
    const blocks = [...folder.tensors.keys()].filter((name) => /_cond_embedding\.blocks\.\d+\.weight$/.test(name));
    this.scaleFactor = 2 ** (blocks.length / 2);
  }

  /**
   * @param model one that it is to guide: what neither a shape nor a `config.json` tells is as in that
   * @throws RequestError if it does not fit the model
   * @throws ModelFolderError, OutOfMemoryError as `ModelSession.open` does
   */
  static async open(folder: ControlFolder, model: ModelFolder, options: LoadOptions): Promise<ControlNet> {
    const problem = problemOfFit(folder, model);
    if (problem !== undefined) throw new RequestError(problem);
    return ControlNet.openWith(folder, folder.config ?? model.unet, options);
  }

  /**
   * Loads it without a model, calls it once on a small input, and lets it go.
   * @throws ModelFolderError if it cannot be used
   */
  static async tryOut(folder: ControlFolder, options: LoadOptions): Promise<void> {
    const config = folder.config ?? folder.family.unet(new Map([['unet', folder.tensors]]));
    const net = await ControlNet.openWith(folder, config, options);
    try {
      const length = (input: string, axis: number): number =>
        Number(net.session.inputs.find(({ name }) => name === input)?.shape[axis] ?? 0);
      const shape: LatentShape = [length('sample', 1), trialEdge, trialEdge];
      const blank = (size: number): Float32Array => new Float32Array(size);
      const row = { timestep: 1, guidanceScale: 1, adapters: noAdapters, timeIds: [64, 64, 0, 0, 64, 64] };
      const own = { sample: blank(shape[0] * trialEdge ** 2), embedding: blank(77 * net.width) };
      const pooled = blank(length('text_embeds', 1));
      const map = blank(3 * (trialEdge * net.scaleFactor) ** 2);
      const given = await net.residuals([{ row: { ...row, ...own, pooled }, map, scale: 1 }], shape);
      const isFinite = Object.values(given).every(({ data }) => areFinite(data as Float32Array));
      if (!isFinite) throw new ModelFolderError(folder.file, notFinite, cures.otherWeights);
    } catch (error) {
      if (!isGraphFault(error)) throw error;
      throw new ModelFolderError(folder.file, `cannot be run: ${(error as Error).message}`, cures.installAgain);
    } finally {
      await net.release();
    }
  }

  private static async openWith(
    folder: ControlFolder,
    config: UNet2DConditionConfig,
    options: LoadOptions,
  ): Promise<ControlNet> {
    return new ControlNet(folder, await ModelSession.open(controlGraphOf(folder, config, options.device), options));
  }

  get spent(): GraphSession['spent'] {
    return this.session.spent;
  }

  /** Why it cannot guide a model, in one sentence; undefined if it can. */
  problemFor(model: ModelFolder): string | undefined {
    return problemOfFit(this.folder, model);
  }

  /** Values to add for each of these rows, side by side, by the names of the U-Net's inputs. */
  residuals(rows: readonly ControlledRow[], [channels, height, width]: LatentShape): Promise<Tensors> {
    const [{ row: first }] = rows;
    const map = [3, height * this.scaleFactor, width * this.scaleFactor];
    const size = channels * height * width;
    return this.session.run({
      // The channels behind the latents' are for the U-Net alone.
      sample: packed(rows, ({ row }) => row.sample.subarray(0, size), [channels, height, width]),
      timestep: packed(rows, ({ row }) => [row.timestep], []),
      encoder_hidden_states: packed(rows, ({ row }) => row.embedding, [
        first.embedding.length / this.width,
        this.width,
      ]),
      ...(this.takes('text_embeds') && {
        text_embeds: packed(rows, ({ row }) => row.pooled!, [first.pooled!.length]),
        time_ids: packed(rows, ({ row }) => row.timeIds!, [6]),
      }),
      controlnet_cond: packed(rows, (row) => row.map, map),
      conditioning_scale: new Tensor(
        'float32',
        Float32Array.from(rows, ({ scale }) => scale),
      ),
    });
  }

  release(): Promise<void> {
    return this.session.release();
  }

  private get width(): number {
    return Number(this.session.inputs.find(({ name }) => name === 'encoder_hidden_states')!.shape[2]);
  }

  private takes(input: string): boolean {
    return this.session.inputs.some(({ name }) => name === input);
  }
}

/**
 * Why a ControlNet cannot guide a model, in one sentence; undefined if it can. It is a copy of the U-Net's way down, so
 * each of its layers has the shape of that layer in the U-Net.
 */
export function problemOfFit({ tensors, family }: ControlFolder, model: ModelFolder): string | undefined {
  if (family.name !== model.family.name)
    return `This ControlNet is for ${family.title}, and the model is of ${model.family.title}.`;
  const unet = model.tensors.get('unet')!;
  const copied = [...tensors].filter(([name]) => !name.startsWith('controlnet_') && name !== 'conv_in.weight');
  const isFit = copied.every(([name, { shape }]) => unet.get(name)?.shape.join() === shape.join());
  return isFit ? undefined : 'The layers of this ControlNet have other sizes than those of the model.';
}
