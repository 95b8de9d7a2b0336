import { asMessage, BufferSource, bytesField, bytesFieldHead, readFields, readText } from './protobuf';
import type { Field } from './protobuf';

/** Field numbers of ModelProto, GraphProto and NodeProto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). */
const modelGraph = 7;
const graphNode = 1;
const nodeName = 3;

/**
 * Copies an ONNX model with the names of like-named nodes made unique. A node's name is a label with no meaning to the graph, and
 * the exporter of PyTorch writes the same one twice where it traces a wrapper, but ONNX Runtime refuses to load such a graph.
 */
export function withUniqueNodeNames(model: Buffer): Buffer {
  const source = new BufferSource(model);
  const seen = new Set<string>();
  const copy = (fields: Iterable<Field>, replace: (field: Field) => Buffer | undefined): Buffer =>
    Buffer.concat([...fields].map((field) => replace(field) ?? model.subarray(field.tagBegin, field.end)));
  const within = (field: Field) => readFields(source, asMessage(field).begin, field.end);

  const rename = (field: Field): Buffer | undefined => {
    if (field.number !== nodeName) return undefined;
    const name = readText(source, field);
    let unique = name;
    for (let n = 2; unique !== '' && seen.has(unique); n++) unique = `${name}#${n}`;
    seen.add(unique);
    return unique === name ? undefined : bytesField(nodeName, unique);
  };
  const graph = (field: Field): Buffer =>
    copy(within(field), (inner) =>
      inner.number === graphNode ? bytesField(graphNode, copy(within(inner), rename)) : undefined,
    );
  return copy(readFields(source, 0, source.size), (field) => {
    if (field.number !== modelGraph) return undefined;
    const body = graph(field);
    return Buffer.concat([bytesFieldHead(modelGraph, body.length), body]);
  });
}
