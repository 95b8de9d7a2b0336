import { join } from 'node:path';
import { withLora } from '../finetune/weights-file';
import { placeCopy, shareFile, shareFolder } from '../model/shared-files';
import type { PlaceCopy } from '../model/shared-files';
import { rewriteGraph } from '../onnx/graph-rewrite';
import type { OnnxModel } from '../onnx/onnx-model';
import { FLOAT } from '../onnx/onnx-proto';
import type { ExternalData } from '../onnx/onnx-proto';
import type { ByteSource } from '../tensor/byte-source';
import { readFactors } from './lora-factors';
import { fitLora } from './lora-fit';
import type { FittedModule } from './lora-fit';
import { LowRankSum } from './low-rank-sum';
import { RequestError } from '../request-error';

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
