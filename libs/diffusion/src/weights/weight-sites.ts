import { canonicalPath } from './lora-keys';
import { FLOAT } from './onnx-proto';
import type { OnnxInitializer, OnnxNode } from './onnx-proto';
import type { OnnxModel } from './onnx-model';

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
  const producers = new Map(model.nodes.flatMap((node) => node.outputs.map((output) => [output, node] as const)));
  const readers = new Map<string, OnnxNode[]>();
  for (const node of model.nodes) {
    for (const input of node.inputs) readers.set(input, [...(readers.get(input) ?? []), node]);
  }
  const sites = new Map<string, WeightSite>();
  for (const node of model.nodes) {
    if (!['MatMul', 'Gemm', 'Conv'].includes(node.opType)) continue;
    const origin = traceWeight(node.inputs[1], producers, model);
    if (!origin) continue;
    const { initializer, names, transposes } = origin;
    const { dims } = initializer;
    if (dims.length !== (node.opType === 'Conv' ? 4 : 2)) continue;
    const flips = transposes + (node.ints.get('transB')?.[0] ?? 0);
    const transposed = node.opType !== 'Conv' && flips % 2 === 0;
    const isOnlyCast = readers
      .get(initializer.name)!
      .every((reader) => reader.opType === 'Cast' && reader.ints.get('to')?.[0] === FLOAT);
    const site: WeightSite = {
      initializer,
      shape: transposed ? [dims[1], dims[0]] : dims,
      transposed,
      cast: isOnlyCast && !model.inputs.includes(initializer.name),
    };
    const named = names.find((name) => name.endsWith('.weight'))?.slice(0, -'.weight'.length);
    const path = named ?? node.name.slice(0, node.name.lastIndexOf('/'));
    if (path) sites.set(canonicalPath(path), site);
  }
  return sites;
}

/** Follows a node's input up to the initializer it comes from, through casts and transpositions. */
function traceWeight(
  value: string | undefined,
  producers: ReadonlyMap<string, OnnxNode>,
  model: OnnxModel,
): { initializer: OnnxInitializer; names: string[]; transposes: number } | undefined {
  const names: string[] = [];
  let transposes = 0;
  // A chain in a malformed graph may be a ring: no longer than the graph has nodes.
  for (let i = 0; value !== undefined && i <= model.nodes.length; i++) {
    names.unshift(value);
    const initializer = model.initializers.get(value);
    if (initializer) return { initializer, names, transposes };
    const producer = producers.get(value);
    if (!producer || !['Cast', 'Identity', 'Transpose'].includes(producer.opType)) return undefined;
    const perm = producer.ints.get('perm');
    if (producer.opType === 'Transpose') {
      if (perm && perm.join() !== '1,0') return undefined;
      transposes++;
    }
    value = producer.inputs[0];
  }
  return undefined;
}
