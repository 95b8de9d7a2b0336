import { closeSync, fstatSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { BufferSource, type ByteSource, FileEndError, FileSource } from '../tensor/byte-source';
import { decodeFloat16 } from '../tensor/half';
import {
  countOf,
  elementBytes,
  type ExternalData,
  FLOAT,
  FLOAT16,
  GRAPH,
  MODEL,
  moveInitializer,
  type OnnxInitializer,
  type OnnxNode,
  type Part,
  partsLength,
  readElementType,
  readInitializer,
  readNode,
  readShape,
  readValueInfo,
} from './onnx-proto';
import { asMessage, bytesFieldHead, type Field, ProtobufError, readFields } from './protobuf';

/** The file is not a well-formed ONNX model, or lacks data that it refers to; the message is one plain sentence. */
export class OnnxModelError extends Error {
  override name = 'OnnxModelError';
}

/**
 * The parts of an ONNX model that a merge needs, read without loading its weights. It can write the model again with
 * some weights in other places; everything else is copied byte for byte.
 */
export class OnnxModel {
  readonly initializers = new Map<string, OnnxInitializer>();
  readonly nodes: OnnxNode[] = [];
  readonly inputs: string[] = [];
  readonly outputs: string[] = [];
  /** The lengths of the axes of each input and output, as far as the model says. */
  readonly shapes = new Map<string, readonly (number | undefined)[] | undefined>();
  /** Their TensorProto.DataType, undefined for what is no tensor or is not told. */
  readonly types = new Map<string, number | undefined>();
  private readonly valueInfos: { name: string; field: Field }[] = [];
  private readonly size: number;
  private graph: Field;

  private constructor(
    readonly path: string,
    source: ByteSource,
  ) {
    this.size = source.size;
    for (const field of readFields(source, 0, source.size)) {
      if (field.number !== MODEL.graph) continue;
      if (this.graph) throw new ProtobufError('it has two graphs');
      this.graph = asMessage(field);
    }
    if (!this.graph) throw new ProtobufError('it has no graph');
    for (const field of readFields(source, this.graph.begin, this.graph.end)) {
      if (field.number === GRAPH.node) this.nodes.push(readNode(source, asMessage(field)));
      else if (field.number === GRAPH.input) this.inputs.push(this.readShaped(source, asMessage(field)));
      else if (field.number === GRAPH.output) this.outputs.push(this.readShaped(source, asMessage(field)));
      else if (field.number === GRAPH.valueInfo) {
        this.valueInfos.push({ name: readValueInfo(source, asMessage(field)), field });
      } else if (field.number === GRAPH.initializer) {
        const initializer = readInitializer(source, asMessage(field));
        if (this.initializers.has(initializer.name))
          throw new ProtobufError(`it has the initializer ${JSON.stringify(initializer.name)} twice`);
        this.initializers.set(initializer.name, initializer);
      }
    }
    if (this.nodes.length === 0) throw new ProtobufError('its graph has no nodes');
  }

  /** @returns the name of an input or output */
  private readShaped(source: ByteSource, field: Field): string {
    const name = readValueInfo(source, field);
    this.shapes.set(name, readShape(source, field));
    this.types.set(name, readElementType(source, field));
    return name;
  }

  /** Reads a model file; its weights are only located. @throws OnnxModelError if it is malformed. */
  static open(path: string): OnnxModel {
    const file = openSync(path, 'r');
    try {
      return OnnxModel.parse(path, new FileSource(file, fstatSync(file).size));
    } finally {
      closeSync(file);
    }
  }

  /** Reads a model from memory, as if it were the file at `path`. @throws OnnxModelError if it is malformed. */
  static from(bytes: Buffer, path: string): OnnxModel {
    return OnnxModel.parse(path, new BufferSource(bytes));
  }

  private static parse(path: string, source: ByteSource): OnnxModel {
    try {
      return new OnnxModel(path, source);
    } catch (error) {
      if (!(error instanceof ProtobufError || error instanceof FileEndError)) throw error;
      throw new OnnxModelError(`${basename(path)} is not an ONNX model: ${error.message}.`);
    }
  }

  /** The names of the external files with the model's weights. */
  externalFiles(): string[] {
    const locations = [...this.initializers.values()].map((initializer) => initializer.data?.location);
    return [...new Set(locations.filter((location) => location !== undefined))];
  }

  /**
   * The values of a float32 or float16 initializer as float32.
   * @throws OnnxModelError if it has another type, or its data is not where the model says.
   */
  async readFloats(initializer: OnnxInitializer): Promise<Float32Array> {
    const { name, dims, dataType, data } = initializer;
    const what = `The weight ${JSON.stringify(name)} of ${basename(this.path)}`;
    if (dataType !== FLOAT && dataType !== FLOAT16) throw new OnnxModelError(`${what} is neither float32 nor float16.`);
    if (!data) throw new OnnxModelError(`${what} is not stored as raw bytes.`);
    const bytes = new Uint8Array(countOf(dims) * elementBytes[dataType]);
    const path = data.location === undefined ? this.path : join(dirname(this.path), data.location);
    const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
      throw new OnnxModelError(`${what} is in the file ${data.location}, which cannot be read (${error.code}).`);
    });
    try {
      const { bytesRead } = await file.read(bytes, 0, bytes.length, data.begin);
      if (bytesRead !== bytes.length || (data.end !== undefined && data.end - data.begin !== bytes.length))
        throw new OnnxModelError(`${what} has fewer or more bytes in ${basename(path)} than its shape needs.`);
    } finally {
      await file.close();
    }
    return dataType === FLOAT ? new Float32Array(bytes.buffer) : decodeFloat16(new Uint16Array(bytes.buffer));
  }

  /**
   * Writes the model with the given initializers' values in other places.
   * @param changes by initializer name
   * @param stale names of values whose recorded shapes are no longer true
   */
  async write(path: string, changes: ReadonlyMap<string, ExternalData>, stale: ReadonlySet<string>): Promise<void> {
    const edits = this.valueInfos
      .filter(({ name }) => stale.has(name))
      .map(({ field }) => ({ field, parts: [] as Part[] }));
    for (const [name, change] of changes) {
      const { field } = this.initializers.get(name)!;
      edits.push({ field, parts: moveInitializer(this.initializers.get(name)!, change) });
    }
    edits.sort((a, b) => a.field.tagBegin - b.field.tagBegin);
    const graph: Part[] = [];
    let position = this.graph.begin;
    for (const { field, parts } of edits) {
      graph.push({ begin: position, end: field.tagBegin }, ...parts);
      position = field.end;
    }
    graph.push({ begin: position, end: this.graph.end });
    await copyParts(this.path, path, [
      { begin: 0, end: this.graph.tagBegin },
      bytesFieldHead(MODEL.graph, partsLength(graph)),
      ...graph,
      { begin: this.graph.end, end: this.size },
    ]);
  }
}

/** Size of one copy step, which bounds memory whatever the model's size. */
const CHUNK_BYTES = 4 * 1024 * 1024;

async function copyParts(from: string, to: string, parts: readonly Part[]): Promise<void> {
  const source = await open(from, 'r');
  try {
    const target = await open(to, 'wx');
    try {
      for (const part of parts) {
        if (Buffer.isBuffer(part)) await target.write(part);
        else {
          for (let begin = part.begin; begin < part.end; begin += CHUNK_BYTES) {
            const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, part.end - begin));
            await source.read(chunk, 0, chunk.length, begin);
            await target.write(chunk);
          }
        }
      }
      await target.sync();
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/** The initializer that a node's input comes from, through casts and transpositions. */
export interface WeightOrigin {
  initializer: OnnxInitializer;
  /** Names of the weight and of its cast and transposed forms. */
  names: string[];
  transposes: number;
  /** Whether the weight is only read through a cast to float32, so that it can be stored as float32. */
  cast: boolean;
}

/** Returns a function that finds the origin of a node's input; undefined for a computed value. */
export function traceWeights(model: OnnxModel): (value: string | undefined) => WeightOrigin | undefined {
  const producers = new Map(model.nodes.flatMap((node) => node.outputs.map((output) => [output, node] as const)));
  const uncast = new Set(model.inputs);
  for (const { opType, ints, inputs } of model.nodes)
    if (opType !== 'Cast' || ints.get('to')?.[0] !== FLOAT) inputs.forEach((input) => uncast.add(input));
  return (value) => {
    const names: string[] = [];
    let transposes = 0;
    // In a malformed graph the chain may be a cycle, so it is followed for at most as many steps
    // as the graph has nodes.
    for (let i = 0; value !== undefined && i <= model.nodes.length; i++) {
      names.unshift(value);
      const initializer = model.initializers.get(value);
      if (initializer) return { initializer, names, transposes, cast: !uncast.has(initializer.name) };
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
