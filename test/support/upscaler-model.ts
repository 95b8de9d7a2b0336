import { bytesField, varintField } from '../../libs/diffusion/src/onnx/protobuf';

/** Field types of onnx.proto. */
const float = 1;
const attributeTypes = { int: 2, ints: 7 };

/**
 * The bytes of an upscaler with the interface of ESRGAN: two 3 x 3 convolutions with fixed, random-looking weights, and the
 * channels of the second rearranged to twice the size.
 * @param edge of the only tile size it accepts; any size if not given
 */
export function encodeUpscaler(edge?: number): Buffer {
  const dims = (values: (number | string)[]): Buffer =>
    Buffer.concat(
      values.map((value) => bytesField(1, typeof value === 'number' ? varintField(1, value) : bytesField(2, value))),
    );
  const value = (name: string, shape: (number | string)[]): Buffer =>
    Buffer.concat([
      bytesField(1, name),
      bytesField(2, bytesField(1, Buffer.concat([varintField(1, float), bytesField(2, dims(shape))]))),
    ]);
  const graph = Buffer.concat([
    bytesField(1, node('Conv', ['x', 'w1'], 'features', { pads: [1, 1, 1, 1] })),
    bytesField(1, node('Relu', ['features'], 'active')),
    bytesField(1, node('Conv', ['active', 'w2'], 'channels', { pads: [1, 1, 1, 1] })),
    bytesField(1, node('DepthToSpace', ['channels'], 'y', {}, { blocksize: 2 })),
    bytesField(2, 'upscaler'),
    bytesField(5, tensor('w1', [8, 3, 3, 3], 1)),
    bytesField(5, tensor('w2', [12, 8, 3, 3], 2)),
    bytesField(11, value('x', [1, 3, edge ?? 'height', edge ?? 'width'])),
    bytesField(12, value('y', [1, 3, edge ? 2 * edge : 'enlarged height', edge ? 2 * edge : 'enlarged width'])),
  ]);
  return Buffer.concat([varintField(1, 8), bytesField(7, graph), bytesField(8, varintField(2, 17))]);
}

function node(
  op: string,
  inputs: string[],
  output: string,
  ints: Record<string, number[]> = {},
  int: Record<string, number> = {},
): Buffer {
  const attributes = [
    ...Object.entries(ints).map(([name, values]) => [
      bytesField(1, name),
      ...values.map((value) => varintField(8, value)),
      varintField(20, attributeTypes.ints),
    ]),
    ...Object.entries(int).map(([name, value]) => [
      bytesField(1, name),
      varintField(3, value),
      varintField(20, attributeTypes.int),
    ]),
  ];
  return Buffer.concat([
    ...inputs.map((input) => bytesField(1, input)),
    bytesField(2, output),
    bytesField(4, op),
    ...attributes.map((fields) => bytesField(5, Buffer.concat(fields))),
  ]);
}

/** Weights around a mean that keeps the output near the input's range, from a small linear congruential generator. */
function tensor(name: string, shape: number[], seed: number): Buffer {
  const size = shape.reduce((product, dim) => product * dim, 1);
  const fanIn = size / shape[0];
  let state = seed;
  const values = Float32Array.from({ length: size }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state / 2 ** 32 + 0.25) / fanIn;
  });
  return Buffer.concat([
    ...shape.map((dim) => varintField(1, dim)),
    varintField(2, float),
    bytesField(8, name),
    bytesField(9, Buffer.from(values.buffer)),
  ]);
}
