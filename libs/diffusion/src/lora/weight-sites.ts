import type { OnnxModel } from '../onnx/onnx-model';
import type { OnnxInitializer } from '../onnx/onnx-proto';
import { traceWeights } from '../onnx/weight-origin';
import { canonicalPath } from './lora-keys';

/** A layer of a graph that a LoRA can change. */
export interface WeightSite {
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
