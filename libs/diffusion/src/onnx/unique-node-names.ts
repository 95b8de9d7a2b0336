import { BufferSource } from '../tensor/byte-source';
import { GRAPH, MODEL, NODE } from './onnx-proto';
import { asMessage, bytesField, bytesFieldHead, readFields, readText } from './protobuf';
import type { Field } from './protobuf';

/**
 * Copies an ONNX model and makes repeated node names unique. A node's name is only a label, and PyTorch's exporter writes the
 * same one twice when it traces a wrapper, but ONNX Runtime refuses to load such a graph.
 */
export function withUniqueNodeNames(model: Buffer): Buffer {
  const source = new BufferSource(model);
  const seen = new Set<string>();
  const copy = (fields: Iterable<Field>, replace: (field: Field) => Buffer | undefined): Buffer =>
    Buffer.concat([...fields].map((field) => replace(field) ?? model.subarray(field.tagBegin, field.end)));
  const within = (field: Field) => readFields(source, asMessage(field).begin, field.end);

  const rename = (field: Field): Buffer | undefined => {
    if (field.number !== NODE.name) return undefined;
    const name = readText(source, field);
    let unique = name;
    for (let n = 2; unique !== '' && seen.has(unique); n++) unique = `${name}#${n}`;
    seen.add(unique);
    return unique === name ? undefined : bytesField(NODE.name, unique);
  };
  const graph = (field: Field): Buffer =>
    copy(within(field), (inner) =>
      inner.number === GRAPH.node ? bytesField(GRAPH.node, copy(within(inner), rename)) : undefined,
    );
  return copy(readFields(source, 0, source.size), (field) => {
    if (field.number !== MODEL.graph) return undefined;
    const body = graph(field);
    return Buffer.concat([bytesFieldHead(MODEL.graph, body.length), body]);
  });
}
