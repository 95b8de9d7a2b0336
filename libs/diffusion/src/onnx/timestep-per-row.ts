import { BufferSource } from '../tensor/byte-source';
import type { OnnxModel } from './onnx-model';
import type { OnnxNode } from './onnx-proto';
import { GRAPH, MODEL, NODE, readNode, readValueInfo, SHAPE, TENSOR_TYPE, TYPE, VALUE_INFO } from './onnx-proto';
import { asMessage, bytesField, bytesFieldHead, readFields } from './protobuf';
import type { Field } from './protobuf';

const TIMESTEP = 'timestep';

/** Whether the graph takes one number as the timestep of all rows, and could take one for each if it did not make a list of it. */
export function hasScalarTimestep({ inputRanks, nodes }: OnnxModel): boolean {
  return inputRanks.get(TIMESTEP) === 0 && unsqueezed(nodes) !== undefined;
}

/**
 * A copy of such a graph that takes a timestep per row, as optimum's exports do not: the operators that make a list of the one
 * number become identities. Shapes noted for values in between are left out, because they hold no longer.
 */
export function withTimestepPerRow(model: Buffer): Buffer {
  const source = new BufferSource(model);
  const within = (field: Field) => readFields(source, asMessage(field).begin, field.end);
  const copy = (fields: Iterable<Field>, replace: (field: Field) => Buffer | undefined): Buffer =>
    Buffer.concat([...fields].map((field) => replace(field) ?? model.subarray(field.tagBegin, field.end)));
  const child = (field: Field, number: number): Field => [...within(field)].find((inner) => inner.number === number)!;

  const timestepInput = (field: Field): Buffer => {
    const tensor = child(child(field, VALUE_INFO.type), TYPE.tensor);
    const elementType = child(tensor, TENSOR_TYPE.elementType);
    const shape = bytesField(TENSOR_TYPE.shape, bytesField(SHAPE.dim, ''));
    const type = Buffer.concat([model.subarray(elementType.tagBegin, elementType.end), shape]);
    return bytesField(
      GRAPH.input,
      Buffer.concat([
        bytesField(VALUE_INFO.name, TIMESTEP),
        bytesField(VALUE_INFO.type, bytesField(TYPE.tensor, type)),
      ]),
    );
  };
  const graph = (field: Field): Buffer => {
    const nodes = [...within(field)]
      .filter(({ number }) => number === GRAPH.node)
      .map((node) => readNode(source, node));
    const changed = new Set(unsqueezed(nodes)?.map(({ outputs: [output] }) => output));
    const identity = ({ inputs: [input], outputs: [output], name }: OnnxNode): Buffer =>
      Buffer.concat([
        bytesField(NODE.input, input),
        bytesField(NODE.output, output),
        bytesField(NODE.name, name),
        bytesField(NODE.opType, 'Identity'),
      ]);
    return copy(within(field), (inner) => {
      if (inner.number === GRAPH.valueInfo) return Buffer.alloc(0);
      if (inner.number === GRAPH.input && readValueInfo(source, inner) === TIMESTEP) return timestepInput(inner);
      if (inner.number !== GRAPH.node) return undefined;
      const node = readNode(source, inner);
      return changed.has(node.outputs[0]) ? bytesField(GRAPH.node, identity(node)) : undefined;
    });
  };
  return copy(readFields(source, 0, source.size), (field) => {
    if (field.number !== MODEL.graph) return undefined;
    const body = graph(field);
    return Buffer.concat([bytesFieldHead(MODEL.graph, body.length), body]);
  });
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
