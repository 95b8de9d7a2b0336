import type { OnnxModel } from './onnx-model';
import {
  GRAPH,
  MODEL,
  NODE,
  type OnnxNode,
  readNode,
  readValueInfo,
  SHAPE,
  TENSOR_TYPE,
  TYPE,
  VALUE_INFO,
} from './onnx-proto';
import { asMessage, bytesField, bytesFieldHead, type Field, readFields, readText } from './protobuf';
import { BufferSource } from '../tensor/byte-source';

const TIMESTEP = 'timestep';

/**
 * Whether the graph takes one number as the timestep of all rows, and could take one for each if it did
 * not make a list of it.
 */
export function hasScalarTimestep({ shapes, nodes }: OnnxModel): boolean {
  return shapes.get(TIMESTEP)?.length === 0 && unsqueezed(nodes) !== undefined;
}

/**
 * A copy of such a graph that takes a timestep per row, as optimum's exports do not: the operators that make a list of
 * the one number become identities. Shapes noted for values in between are left out, because they hold no longer.
 */
export function withTimestepPerRow(model: Buffer): Buffer<ArrayBuffer> {
  return editedGraph(model, (graph, { source, copy, within }) => {
    const nodes = [...within(graph)]
      .filter(({ number }) => number === GRAPH.node)
      .map((node) => readNode(source, node));
    const changed = new Set(unsqueezed(nodes)?.map(({ outputs: [output] }) => output));
    return copy(within(graph), (inner) => {
      if (inner.number === GRAPH.valueInfo) return Buffer.alloc(0);
      if (inner.number === GRAPH.input && readValueInfo(source, inner) === TIMESTEP)
        return timestepInput(model, inner, within);
      if (inner.number !== GRAPH.node) return undefined;
      const node = readNode(source, inner);
      return changed.has(node.outputs[0]) ? bytesField(GRAPH.node, identity(node)) : undefined;
    });
  });
}

/** The input with its element type and one free axis. */
function timestepInput(model: Buffer, field: Field, within: GraphEditor['within']): Buffer {
  const child = (of: Field, number: number): Field => [...within(of)].find((inner) => inner.number === number)!;
  const elementType = child(child(child(field, VALUE_INFO.type), TYPE.tensor), TENSOR_TYPE.elementType);
  const shape = bytesField(TENSOR_TYPE.shape, bytesField(SHAPE.dim, ''));
  const tensor = Buffer.concat([model.subarray(elementType.tagBegin, elementType.end), shape]);
  const type = bytesField(VALUE_INFO.type, bytesField(TYPE.tensor, tensor));
  return bytesField(GRAPH.input, Buffer.concat([bytesField(VALUE_INFO.name, TIMESTEP), type]));
}

function identity({ inputs: [input], outputs: [output], name }: OnnxNode): Buffer {
  return Buffer.concat([
    bytesField(NODE.input, input),
    bytesField(NODE.output, output),
    bytesField(NODE.name, name),
    bytesField(NODE.opType, 'Identity'),
  ]);
}

/** The nodes that give the timestep its one axis, if every use of it goes through one. */
function unsqueezed(nodes: readonly OnnxNode[]): OnnxNode[] | undefined {
  const scalars = new Set([TIMESTEP]);
  const found: OnnxNode[] = [];
  // Nodes are in the order of their execution.
  for (const node of nodes) {
    if (!node.inputs.some((input) => scalars.has(input))) continue;
    if (node.opType === 'Cast' || node.opType === 'Identity') scalars.add(node.outputs[0]);
    else if (node.opType === 'Unsqueeze' && scalars.has(node.inputs[0])) found.push(node);
    else return undefined;
  }
  return found.length > 0 ? found : undefined;
}

/**
 * Copies an ONNX model and makes repeated node names unique. A node's name is only a label, and PyTorch's exporter
 * writes the same one twice when it traces a wrapper, but ONNX Runtime refuses to load such a graph.
 */
export function withUniqueNodeNames(model: Buffer): Buffer<ArrayBuffer> {
  const seen = new Set<string>();
  return editedGraph(model, (graph, { source, copy, within }) => {
    const rename = (field: Field): Buffer | undefined => {
      if (field.number !== NODE.name) return undefined;
      const name = readText(source, field);
      let unique = name;
      for (let n = 2; unique !== '' && seen.has(unique); n++) unique = `${name}#${n}`;
      seen.add(unique);
      return unique === name ? undefined : bytesField(NODE.name, unique);
    };
    return copy(within(graph), (inner) =>
      inner.number === GRAPH.node ? bytesField(GRAPH.node, copy(within(inner), rename)) : undefined,
    );
  });
}

/** What an edit reads a model with, and writes what it keeps. */
interface GraphEditor {
  source: BufferSource;
  /** The fields of a message. */
  within(this: void, field: Field): Iterable<Field>;
  /** Copies fields, except those that are replaced; an empty buffer leaves one out. */
  copy(this: void, fields: Iterable<Field>, replace: (field: Field) => Buffer | undefined): Buffer;
}

/**
 * A copy of an ONNX model with another graph; all else is copied byte for byte.
 * @param edit returns the fields of the new graph
 */
function editedGraph(model: Buffer, edit: (graph: Field, editor: GraphEditor) => Buffer): Buffer<ArrayBuffer> {
  const source = new BufferSource(model);
  const copy = (fields: Iterable<Field>, replace: (field: Field) => Buffer | undefined): Buffer<ArrayBuffer> =>
    Buffer.concat([...fields].map((field) => replace(field) ?? model.subarray(field.tagBegin, field.end)));
  const within = (field: Field) => readFields(source, asMessage(field).begin, field.end);
  return copy(readFields(source, 0, source.size), (field) => {
    if (field.number !== MODEL.graph) return undefined;
    const body = edit(field, { source, within, copy });
    return Buffer.concat([bytesFieldHead(MODEL.graph, body.length), body]);
  });
}
