import { BufferSource } from '../tensor/byte-source';
import { MODEL } from './onnx-proto';
import { asMessage, bytesFieldHead, readFields } from './protobuf';
import type { Field } from './protobuf';

/** What an edit reads a model with, and writes what it keeps. */
export interface GraphEditor {
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
export function editedGraph(model: Buffer, edit: (graph: Field, editor: GraphEditor) => Buffer): Buffer<ArrayBuffer> {
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
