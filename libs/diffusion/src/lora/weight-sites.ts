import { canonicalPath } from './lora-keys';
import { FLOAT } from '../onnx/onnx-proto';
import type { OnnxInitializer } from '../onnx/onnx-proto';
import type { OnnxModel } from '../onnx/onnx-model';

/** A layer of a graph that a LoRA can change. */
export interface WeightSite {
  initializer: OnnxInitializer;
  /** The weight's shape as PyTorch has it: [out, in] or [out, in, height, width]. */
  shape: number[];
  /** A linear weight stored as [in, out]. */
  transposed: boolean;
  /** The weight is only read through a cast to float32, so it may as well be stored as float32. */
  cast: boolean;
}

/**
 * The linear and convolution layers of a graph by their module's path (see `canonicalPath`). The path is the initializer's
 * own name where the exporter kept it (`<path>.weight`); where it was folded away (`onnx::MatMul_123`), the name of the
 * node that multiplies by it tells the path (`/<path>/MatMul`).
 */
export function findWeightSites(model: OnnxModel): Map<string, WeightSite> {
  const trace = createTrace(model);
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

/** A table that a graph looks rows up in. */
export interface TableSite {
  initializer: OnnxInitializer;
  /** Names of the table and of what it is cast to. */
  names: string[];
  cast: boolean;
}

/** The table of token embeddings: the one with the most rows. */
export function findTable(model: OnnxModel): TableSite | undefined {
  const trace = createTrace(model);
  const tables = model.nodes
    .filter(({ opType }) => opType === 'Gather')
    .map((node) => trace(node.inputs[0]))
    .filter((origin) => origin?.initializer.dims.length === 2 && origin.transposes === 0);
  return tables.sort((a, b) => b!.initializer.dims[0] - a!.initializer.dims[0])[0];
}

/** Where a node's input comes from: an initializer, through casts and transpositions. */
interface Origin extends TableSite {
  transposes: number;
}

function createTrace(model: OnnxModel): (value: string | undefined) => Origin | undefined {
  const producers = new Map(model.nodes.flatMap((node) => node.outputs.map((output) => [output, node] as const)));
  const uncast = new Set(model.inputs);
  for (const { opType, ints, inputs } of model.nodes) {
    if (opType !== 'Cast' || ints.get('to')?.[0] !== FLOAT) inputs.forEach((input) => uncast.add(input));
  }
  return (value) => {
    const names: string[] = [];
    let transposes = 0;
    // In a malformed graph the chain may be a ring: it is no longer than the graph has nodes.
    for (let i = 0; value !== undefined && i <= model.nodes.length; i++) {
      names.unshift(value);
      const initializer = model.initializers.get(value);
      if (initializer) return { initializer, names, transposes, cast: !uncast.has(initializer.name) };
      const producer = producers.get(value);
      if (!producer || !['Cast', 'Identity', 'Transpose'].includes(producer.opType)) return undefined;
      if (producer.opType === 'Transpose') {
        if ((producer.ints.get('perm') ?? [1, 0]).join() !== '1,0') return undefined;
        transposes++;
      }
      value = producer.inputs[0];
    }
    return undefined;
  };
}
