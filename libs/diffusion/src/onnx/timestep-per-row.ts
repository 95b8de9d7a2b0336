import { editedGraph } from './edited-graph';
import type { GraphEditor } from './edited-graph';
import type { OnnxModel } from './onnx-model';
import type { OnnxNode } from './onnx-proto';
import { GRAPH, NODE, readNode, readValueInfo, SHAPE, TENSOR_TYPE, TYPE, VALUE_INFO } from './onnx-proto';
import { bytesField } from './protobuf';
import type { Field } from './protobuf';

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
