import { editedGraph } from './edited-graph';
import { GRAPH, NODE } from './onnx-proto';
import { bytesField, readText } from './protobuf';
import type { Field } from './protobuf';

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
