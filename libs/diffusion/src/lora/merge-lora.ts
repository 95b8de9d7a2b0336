import { join } from 'node:path';
import { withLora } from '../finetune/weights-file';
import { placeCopy, type PlaceCopy, shareFile, shareFolder } from '../model/shared-files';
import { rewriteGraph } from '../onnx/graph-rewrite';
import type { OnnxModel } from '../onnx/onnx-model';
import { type ExternalData, FLOAT } from '../onnx/onnx-proto';
import type { ByteSource } from '../tensor/byte-source';
import { fitLora, type FittedModule } from './lora-fit';
import { RequestError } from '../errors';
import { readFloats } from '../safetensors/safetensors';
import type { LoraModule } from './lora';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { spinning } from '../model/device';
import { gemmModel } from '../onnx/small-graph';

export interface MergeLoraOptions {
  /** A model folder in diffusers' layout; only its `unet` and `text_encoder` are changed. */
  baseFolder: string;
  /** The LoRA's safetensors file. */
  lora: string;
  /** 0 gives the base model, 1 the LoRA as trained. */
  scale: number;
  /** The folder to write, empty or missing; best on the base's device, where files are linked and not copied. */
  folder: string;
  /** Places files that cannot be linked; by default each is copied. */
  placeCopy?: PlaceCopy;
  /** Ends the merge between two layers; the folder must then not be used. */
  signal?: Pick<AbortSignal, 'throwIfAborted'>;
}

/**
 * Writes a model folder with the LoRA merged into the weights: W + scale * alpha / rank * up x down. On a layer's
 * output this is the sum that diffusers computes (`LoraLayer.forward` of peft). The changed weights are in one new
 * file; all others stay in the base's files, hard-linked beside the graph. If the base has its weights inside
 * `model.onnx`, that file is linked and the new graph points into it, so no base is ever copied. One layer is in memory
 * at a time. `fitLora`, which every merge and inspection calls, bounds the work.
 * @returns the number of changed weights
 * @throws WeightsError if the LoRA is malformed or does not fit; OnnxModelError if the base is malformed; the
 * folder must then not be used
 */
export async function mergeLora(options: MergeLoraOptions): Promise<number> {
  const { baseFolder, scale, folder, placeCopy: copy = placeCopy, signal } = options;
  if (!Number.isFinite(scale)) throw new RequestError(`The scale is ${scale}; a finite number is accepted.`);
  return withLora(options.lora, async (lora, source) => {
    const parts = fitLora(lora, baseFolder);
    const graphs = parts.map(({ part }) => `${part}/`);
    // Other graphs of a changed part, such as fused ones for a GPU, would draw without the LoRA, so they are left out.
    const isShared = (path: string) => !(path.endsWith('.onnx') && graphs.some((start) => path.startsWith(start)));
    await shareFolder(baseFolder, folder, copy, isShared);
    const share = (from: string, to: string) => shareFile(from, to, copy);
    const sum = await LowRankSum.create();
    try {
      for (const { part, model, modules } of parts) {
        const stale = new Set(modules.map(({ site }) => site.initializer.name));
        await rewriteGraph(model, join(folder, part), share, stale, async (file) => {
          const changes = new Map<string, ExternalData>();
          for (const fitted of modules) {
            signal?.throwIfAborted();
            const { initializer, cast } = fitted.site;
            const weight = await mergeModule(model, fitted, source, scale, sum);
            // A weight that is only read through a cast to float32 is stored as float32, which
            // avoids a second rounding.
            changes.set(initializer.name, await file.append(weight, cast ? FLOAT : initializer.dataType));
          }
          return changes;
        });
      }
    } finally {
      await sum.release();
    }
    return lora.modules.size;
  });
}

/** The merged weight, in the layout of the graph. */
async function mergeModule(
  model: OnnxModel,
  { module, site }: FittedModule,
  source: ByteSource,
  scale: number,
  sum: LowRankSum,
): Promise<Float32Array> {
  const { rank, alpha } = module;
  const { up, down } = await readFactors(source, module, sum);
  const weight = await model.readFloats(site.initializer);
  const factor = (scale * alpha) / rank;
  const scaled = up.map((value) => value * factor);
  if (!site.transposed) return sum.add(weight, scaled, down, rank);
  // (up x down)^T = down^T x up^T
  return sum.add(weight, transpose(down, rank), transpose(scaled, up.length / rank), rank);
}

function transpose(matrix: Float32Array, rows: number): Float32Array {
  const columns = matrix.length / rows;
  const result = new Float32Array(matrix.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) result[column * rows + row] = matrix[row * columns + column];
  }
  return result;
}

/**
 * The factors of one layer: `up` [out, rank] and `down` [rank, in * height * width], which includes a middle factor.
 */
interface LoraFactors {
  up: Float32Array;
  down: Float32Array;
}

/** Reads one layer's factors from the file. */
export async function readFactors(
  source: ByteSource,
  { up, down, mid, rank, shape }: LoraModule,
  sum: Pick<LowRankSum, 'add'>,
): Promise<LoraFactors> {
  const lower = readFloats(source, down);
  if (!mid) return { up: readFloats(source, up), down: lower };
  const taps = shape[2] * shape[3];
  return { up: readFloats(source, up), down: await foldMid(readFloats(source, mid), lower, rank, taps, sum) };
}

/**
 * Tucker form: down[a, i, k] = sum over b of mid[a, b, k] * down[b, i], one matrix product for each
 * position k of the kernel.
 */
async function foldMid(
  mid: Float32Array,
  down: Float32Array,
  rank: number,
  taps: number,
  sum: Pick<LowRankSum, 'add'>,
): Promise<Float32Array> {
  const folded = new Float32Array(down.length * taps);
  const left = new Float32Array(rank * rank);
  for (let tap = 0; tap < taps; tap++) {
    for (let i = 0; i < left.length; i++) left[i] = mid[i * taps + tap];
    const product = await sum.add(new Float32Array(down.length), left, down, rank);
    for (let i = 0; i < product.length; i++) folded[i * taps + tap] = product[i];
  }
  return folded;
}

/** Threads sleep between two sums instead of spinning, because reading and writing weights takes most of the time. */
const waiting = spinning(0);

/**
 * Adds low-rank products to weights on all cores: a rank 128 LoRA for SD 1.5 takes about 70 billion multiplications.
 */
class LowRankSum {
  private constructor(private readonly session: InferenceSession) {}

  static async create(): Promise<LowRankSum> {
    return new LowRankSum(await InferenceSession.create(gemmModel(), waiting));
  }

  /** weight [rows, columns] + left [rows, rank] x right [rank, columns], all row-major. */
  async add(weight: Float32Array, left: Float32Array, right: Float32Array, rank: number): Promise<Float32Array> {
    const [rows, columns] = [left.length / rank, right.length / rank];
    const { sum } = await this.session.run({
      left: new Tensor('float32', left, [rows, rank]),
      right: new Tensor('float32', right, [rank, columns]),
      weight: new Tensor('float32', weight, [rows, columns]),
    });
    return sum.data as Float32Array;
  }

  async release(): Promise<void> {
    await this.session.release();
  }
}
