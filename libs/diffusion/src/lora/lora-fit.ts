import { join } from 'node:path';
import { misfit, quote, shapeText, WeightsError } from '../finetune/weights-error';
import { findPlainGraph } from '../model/graph-file';
import { OnnxModel, traceWeights } from '../onnx/onnx-model';
import type { Lora, LoraModule } from './lora';
import { canonicalPath, type ModelPart } from './lora-keys';
import type { OnnxInitializer } from '../onnx/onnx-proto';

/**
 * Upper bound of a layer's rank, unless the shorter side of its weight is longer: a higher rank adds nothing. Published
 * LoRAs have ranks up to 1,024, whatever the layer.
 */
export const maxRank = 1024;

/**
 * Most multiplications of a merge: four times those of a LoRA of rank 128 on every layer of SD 1.5; about
 * ten seconds on two cores.
 */
const maxMultiplications = 5e11;

/** A layer of the LoRA and the base weight that it changes. */
export interface FittedModule {
  module: LoraModule;
  site: WeightSite;
}

/** One part of the base model, and the layers that the LoRA changes in it. */
interface FittedPart {
  part: ModelPart;
  model: OnnxModel;
  modules: FittedModule[];
}

/**
 * Finds the base weight for every layer of a LoRA, by shapes alone. At most one layer changes each base weight, so the
 * base's size, the ranks and {@link maxMultiplications} bound all further work.
 * @throws WeightsError if the base lacks a layer or has it in another shape, or if the merge would take too much work;
 * OnnxModelError if the base is malformed.
 */
export function fitLora(lora: Lora, baseFolder: string): FittedPart[] {
  const parts = new Map<ModelPart, FittedPart & { sites: Map<string, WeightSite>; changed: Set<string> }>();
  let multiplications = 0;
  for (const module of lora.modules.values()) {
    const { part } = module;
    let fitted = parts.get(part);
    if (!fitted) {
      const path = findPlainGraph(join(baseFolder, part));
      if (path === undefined)
        throw misfit(`The key ${quote(module.key)} is for a ${part}, which the base model does not have.`);
      const model = OnnxModel.open(path);
      const sites = findWeightSites(model);
      // Exporters of PyTorch before 1.13 number nodes and weights, so nothing shows which layer a weight belongs to.
      if (![...sites.keys()].some((path) => path.includes('attn'))) {
        if (isQuantized(model))
          throw misfit(`The base model's ${part} is quantised to integers, so that no LoRA can be merged into it.`);
        throw misfit(
          `The base model's ${part} was exported without its layers' names, so that no LoRA can be merged into it.`,
        );
      }
      fitted = { part, model, modules: [], sites, changed: new Set() };
      parts.set(part, fitted);
    }
    const site = fitted.sites.get(module.path);
    if (!site) throw misfit(`The key ${quote(module.key)} is for a layer that the base model's ${part} does not have.`);
    if (squeeze(site.shape) !== squeeze(module.shape))
      throw misfit(
        `The key ${quote(module.key)} is for a weight of shape ${shapeText(module.shape)}; the base model's is ${shapeText(site.shape)}.`,
      );
    if (fitted.changed.has(site.initializer.name))
      throw misfit(`The key ${quote(module.key)} is for a weight that the base model shares with another layer.`);
    fitted.changed.add(site.initializer.name);
    multiplications += assertRank(module);
    if (multiplications > maxMultiplications)
      throw tooComplex(
        `To merge the file takes more than ${maxMultiplications} multiplications; its ranks are too high.`,
      );
    fitted.modules.push({ module, site });
  }
  return [...parts.values()].map(({ part, model, modules }) => ({ part, model, modules }));
}

/** Whether its layers multiply integers. */
function isQuantized({ nodes }: OnnxModel): boolean {
  return nodes.some(({ opType }) =>
    /^(MatMulInteger|ConvInteger|QLinearMatMul|QLinearConv|DequantizeLinear|MatMulNBits)$/.test(opType),
  );
}

/** @returns the layer's multiplications. @throws WeightsError for a rank that adds nothing. */
function assertRank({ key, rank, mid, shape: [out, ...inputs] }: LoraModule): number {
  const columns = inputs.reduce((product, length) => product * length, 1);
  const most = Math.max(maxRank, Math.min(out, columns));
  if (rank > most)
    throw tooComplex(`The layer of ${quote(key)} has the rank ${rank}; its weight takes at most ${most}.`);
  return rank * columns * (out + (mid ? rank : 0));
}

/** A 1 x 1 convolution is a linear layer: published LoRAs use either for `proj_in` and `proj_out`. */
function squeeze(shape: readonly number[]): string {
  const isPointwise = shape.length === 4 && shape[2] === 1 && shape[3] === 1;
  return (isPointwise ? shape.slice(0, 2) : shape).join();
}

function tooComplex(sentence: string): WeightsError {
  return new WeightsError('WeightsTooComplex', sentence);
}

/** A layer of a graph that a LoRA can change. */
interface WeightSite {
  initializer: OnnxInitializer;
  /** The weight's shape in PyTorch: [out, in] or [out, in, height, width]. */
  shape: number[];
  /** Whether a linear weight is stored as [in, out]. */
  transposed: boolean;
  /** Whether the weight is only read through a cast to float32, so that it can be stored as float32. */
  cast: boolean;
}

/**
 * The linear and convolution layers of a graph by their module's path (see `canonicalPath`). The path is the
 * initializer's name if the exporter kept it (`<path>.weight`); if it was folded away (`onnx::MatMul_123`), the path
 * comes from the name of the node that multiplies by it (`/<path>/MatMul`).
 */
export function findWeightSites(model: OnnxModel): Map<string, WeightSite> {
  const trace = traceWeights(model);
  const sites = new Map<string, WeightSite>();
  for (const node of model.nodes) {
    if (!['MatMul', 'Gemm', 'Conv'].includes(node.opType)) continue;
    const origin = trace(node.inputs[1]);
    if (origin?.initializer.dims.length !== (node.opType === 'Conv' ? 4 : 2)) continue;
    const { initializer, names, transposes, cast } = origin;
    const { dims } = initializer;
    const flips = transposes + (node.ints.get('transB')?.[0] ?? 0);
    const transposed = node.opType !== 'Conv' && flips % 2 === 0;
    const shape = transposed ? [dims[1], dims[0]] : dims;
    const named = names.find((name) => name.endsWith('.weight'))?.slice(0, -'.weight'.length);
    const path = named ?? node.name.slice(0, node.name.lastIndexOf('/'));
    if (path) sites.set(canonicalPath(path), { initializer, shape, transposed, cast });
  }
  return sites;
}
