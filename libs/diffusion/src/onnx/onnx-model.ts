import { closeSync, fstatSync, openSync } from 'node:fs';
import { basename } from 'node:path';
import { type ByteSource, FileEndError, FileSource } from '../tensor/byte-source';
import { GRAPH, MODEL, type OnnxInitializer, type OnnxNode, readInitializer, readNode } from './onnx-proto';
import { asMessage, ProtobufError, readFields } from './protobuf';

/** The file is not a well-formed ONNX model; the message is one plain sentence. */
export class OnnxModelError extends Error {
  override name = 'OnnxModelError';
}

/** The nodes of an ONNX file, and where its weights are; none of these is read. */
export interface OnnxModel {
  initializers: ReadonlyMap<string, OnnxInitializer>;
  nodes: readonly OnnxNode[];
}

/** @throws OnnxModelError if it is malformed */
export function openOnnx(path: string): OnnxModel {
  const file = openSync(path, 'r');
  try {
    return parseOnnx(new FileSource(file, fstatSync(file).size), basename(path));
  } finally {
    closeSync(file);
  }
}

/** @param name of the file, for messages @throws OnnxModelError if it is malformed */
export function parseOnnx(source: ByteSource, name: string): OnnxModel {
  try {
    return readGraph(source);
  } catch (error) {
    if (!(error instanceof ProtobufError || error instanceof FileEndError)) throw error;
    throw new OnnxModelError(`${name} is not an ONNX model: ${error.message}.`);
  }
}

function readGraph(source: ByteSource): OnnxModel {
  const graphs = [...readFields(source, 0, source.size)].filter(({ number }) => number === MODEL.graph);
  if (graphs.length !== 1) throw new ProtobufError(graphs.length > 1 ? 'it has two graphs' : 'it has no graph');
  const graph = asMessage(graphs[0]);
  const initializers = new Map<string, OnnxInitializer>();
  const nodes: OnnxNode[] = [];
  for (const field of readFields(source, graph.begin, graph.end)) {
    if (field.number === GRAPH.node) nodes.push(readNode(source, asMessage(field)));
    if (field.number !== GRAPH.initializer) continue;
    const initializer = readInitializer(source, asMessage(field));
    if (initializers.has(initializer.name))
      throw new ProtobufError(`it has the initializer ${JSON.stringify(initializer.name)} twice`);
    initializers.set(initializer.name, initializer);
  }
  if (nodes.length === 0) throw new ProtobufError('its graph has no nodes');
  return { initializers, nodes };
}

/** The initializer that a node's input comes from, through casts and transpositions. */
export interface WeightOrigin {
  initializer: OnnxInitializer;
  /** Names of the weight and of its cast and transposed forms. */
  names: string[];
  transposes: number;
}

/** Returns a function that finds the origin of a node's input; undefined for a computed value. */
export function traceWeights({
  initializers,
  nodes,
}: OnnxModel): (value: string | undefined) => WeightOrigin | undefined {
  const producers = new Map(nodes.flatMap((node) => node.outputs.map((output) => [output, node] as const)));
  return (value) => {
    const names: string[] = [];
    let transposes = 0;
    // In a malformed graph the chain may be a cycle, so it is followed for at most as many steps as there are nodes.
    for (let i = 0; value !== undefined && i <= nodes.length; i++) {
      names.unshift(value);
      const initializer = initializers.get(value);
      if (initializer) return { initializer, names, transposes };
      const producer = producers.get(value);
      if (!producer || !['Cast', 'Identity', 'Transpose', 'Unsqueeze'].includes(producer.opType)) return undefined;
      if (producer.opType === 'Transpose') {
        if ((producer.ints.get('perm') ?? [1, 0]).join() !== '1,0') return undefined;
        transposes++;
      }
      value = producer.inputs[0];
    }
    return undefined;
  };
}
