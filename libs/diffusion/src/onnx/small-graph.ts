import { FLOAT, GRAPH, MODEL, NODE, OPSET, TENSOR_TYPE, TYPE, VALUE_INFO, SHAPE } from './onnx-proto';
import { bytesField, varintField } from './protobuf';

/** A graph with one node, whose inputs and output are float32 tensors of one rank and any size. */
interface SmallGraph {
  name: string;
  opType: string;
  inputs: string[];
  output: string;
  rank: number;
}

/** Format and operator versions that every recent ONNX Runtime reads. */
const IR_VERSION = 8;
const OPSET_VERSION = 13;

/** sum = left [rows, rank] x right [rank, columns] + weight [rows, columns]. */
export function gemmModel(): Buffer {
  return encode({
    name: 'low-rank-sum',
    opType: 'Gemm',
    inputs: ['left', 'right', 'weight'],
    output: 'sum',
    rank: 2,
  });
}

/** A model that returns its input: the smallest there is, to test a device with. */
export function identityModel(): Buffer {
  return encode({ name: 'identity', opType: 'Identity', inputs: ['x'], output: 'y', rank: 1 });
}

function encode({ name, opType, inputs, output, rank }: SmallGraph): Buffer {
  const node = [
    ...inputs.map((input) => bytesField(NODE.input, input)),
    bytesField(NODE.output, output),
    bytesField(NODE.opType, opType),
  ];
  const shape = Array.from({ length: rank }, () => bytesField(SHAPE.dim, ''));
  const tensor = [varintField(TENSOR_TYPE.elementType, FLOAT), bytesField(TENSOR_TYPE.shape, Buffer.concat(shape))];
  const type = bytesField(VALUE_INFO.type, bytesField(TYPE.tensor, Buffer.concat(tensor)));
  const value = (name: string) => Buffer.concat([bytesField(VALUE_INFO.name, name), type]);
  const graph = [
    bytesField(GRAPH.node, Buffer.concat(node)),
    bytesField(GRAPH.name, name),
    ...inputs.map((input) => bytesField(GRAPH.input, value(input))),
    bytesField(GRAPH.output, value(output)),
  ];
  return Buffer.concat([
    varintField(MODEL.irVersion, IR_VERSION),
    bytesField(MODEL.opset, varintField(OPSET.version, OPSET_VERSION)),
    bytesField(MODEL.graph, Buffer.concat(graph)),
  ]);
}
