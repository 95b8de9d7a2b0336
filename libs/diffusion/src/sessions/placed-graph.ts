import { realpathSync } from 'node:fs';
import { dirname, parse, relative, sep } from 'node:path';
import { encodeGraph, type Graph } from '../graph/graph';
import { countOf } from '../weights/named-tensor';

/** A graph that can be opened. */
export interface PlacedGraph {
  /** Path of the weights, for messages. */
  file: string;
  /** The ONNX file, which is never written. */
  bytes: Uint8Array;
  /** The folder that the names of its weights' files are below. */
  folder: string;
  /** Bytes that its weights in half precision take in float32. */
  widenedBytes: number;
}

/** The graph with the places of its weights: they are read where they are, wherever that is. */
export function placeGraph(graph: Graph, file: string): PlacedGraph {
  const weights = [...graph.initializers.values()].flatMap((one) => ('file' in one ? [one.file] : []));
  // ONNX Runtime reads no file that a link leads to outside of the folder.
  const real = new Map([...new Set(weights)].map((path) => [path, realpathSync(path)]));
  const folder = commonFolder([...real.values()]) ?? dirname(file);
  const locations = [...real].map(([path, at]) => [path, relative(folder, at).replaceAll(sep, '/')] as const);
  return { file, bytes: encodeGraph(graph, new Map(locations)), folder, widenedBytes: widenedBytesOf(graph) };
}

/** Bytes that a graph's weights in half precision take in float32. */
export function widenedBytesOf({ initializers }: Pick<Graph, 'initializers'>): number {
  const widened = [...initializers.values()].filter((one) => 'file' in one && !['F32', 'I8'].includes(one.type));
  return widened.reduce((sum, { shape }) => sum + 4 * countOf(shape), 0);
}

function commonFolder([first, ...others]: readonly string[]): string | undefined {
  if (first === undefined) return undefined;
  let folder = dirname(first);
  const isAbove = (path: string): boolean => path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
  while (!others.every(isAbove) && folder !== parse(folder).root) folder = dirname(folder);
  return folder;
}
