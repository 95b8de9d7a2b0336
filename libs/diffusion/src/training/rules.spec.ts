import { InferenceSession, Tensor } from '../sessions/onnx-runtime';
import { encodeGraph, type Value } from '../graph/graph';
import { attend } from '../graph/attention';
import { gelu, matmulTransposed, rotaryEmbedding, silu } from '../graph/layers';
import { microsoft } from '../graph/graph-builder';
import { Module } from '../graph/module';
import { upsample2D } from '../architectures/blocks';
import { differentiate } from './differentiate';
import { rules } from './rules';
import { UnknownOperatorError } from '../graph/shapes';
import { SizedGraph } from '../graph/sized-graph';

const random = (shape: readonly number[], seed: number): Float32Array =>
  Float32Array.from({ length: shape.reduce((x, y) => x * y, 1) }, (_, i) =>
    Math.sin(12.9898 * (i + 1) + 78.233 * seed),
  );

/** Makes a value of others with the operators that a test is about. */
type Layer = (m: Module, ...inputs: Value[]) => Value;

/**
 * The gradients of a sum of what a layer gives, each number with a weight of its own, and what finite differences say
 * they are along a direction.
 */
async function compare(
  layer: Layer,
  shapes: readonly (readonly number[])[],
  { partOf, mayCopyWeights }: { partOf?: () => string; mayCopyWeights?: boolean } = {},
) {
  const m = Module.of({ tensors: new Map() });
  const inputs = shapes.map((shape, i) => m.input(`x${i}`, shape));
  m.output('y', layer(m, ...inputs), []);
  const graph = new SizedGraph(mayCopyWeights);
  graph.include(m.finish().graph, ({ shape }) => shape as number[]);
  const seed = graph.floats('seed', random(graph.shape('y'), 9), graph.shape('y'));
  const gradients = differentiate(graph, new Map([['y', seed]]), inputs, partOf);
  graph.graph.outputs.push({ name: 'y', type: 'float32', shape: graph.shape('y') });
  for (const input of inputs) graph.output(`gradient/${input}`, gradients.get(input)!);
  const session = await InferenceSession.create(encodeGraph(graph.finish(), new Map()));
  const values = shapes.map((shape, i) => random(shape, i));
  const run = (given: readonly Float32Array[]) =>
    session.run(Object.fromEntries(inputs.map((name, i) => [name, new Tensor('float32', given[i], shapes[i])])));
  const weights = random(graph.shape('y'), 9);
  const sumOf = async (given: readonly Float32Array[]): Promise<number> =>
    ((await run(given)).y.data as Float32Array).reduce((sum, y, i) => sum + y * weights[i], 0);
  const found = await run(values);
  const step = 1e-2;
  const results: [number, number][] = [];
  for (const [k, input] of inputs.entries()) {
    const direction = random(shapes[k], 20 + k);
    const moved = (by: number) =>
      values.with(
        k,
        values[k].map((x, i) => x + by * direction[i]),
      );
    const expected = ((await sumOf(moved(step))) - (await sumOf(moved(-step)))) / (2 * step);
    const gradient = found[`gradient/${input}`].data as Float32Array;
    results.push([gradient.reduce((sum, g, i) => sum + g * direction[i], 0), expected]);
  }
  await session.release();
  return results;
}

const picture = [2, 3, 4, 6];
const tokens = [2, 5, 8];
const constant = (m: Module, shape: readonly number[]): Value =>
  m.exactly(`c${shape.join()}`, [...random(shape, 5)], shape);

/** For each rule something that is made with its operator. */
const layers: Readonly<Record<string, readonly [Layer, ...(readonly number[])[]]>> = {
  Identity: [(m, x) => m.op('Identity', [x]), tokens],
  Add: [(m, x, y) => m.add(x, y), tokens, [1, 8]],
  Sub: [(m, x, y) => m.op('Sub', [x, y]), tokens, [5, 1]],
  Mul: [(m, x, y) => m.mul(x, y), tokens, [2, 1, 8]],
  Where: [(m, x, y) => m.op('Where', [m.op('Less', [constant(m, tokens), m.number(0)]), x, y]), tokens, tokens],
  Reshape: [(m, x) => m.reshape(x, 0, -1), tokens],
  Unsqueeze: [(m, x) => m.op('Unsqueeze', [x, m.integers([1])]), tokens],
  Squeeze: [(m, x) => m.op('Squeeze', [x, m.integers([1])]), [2, 1, 3]],
  Transpose: [(m, x) => m.transpose(x, 0, 3, 1, 2), picture],
  Concat: [(m, x, y) => m.concat([x, y], 1), tokens, [2, 3, 8]],
  Split: [(m, x) => m.ops('Split', 2, [x, m.integers([3, 5])], { axis: 2 })[1], tokens],
  Slice: [(m, x) => m.op('Slice', [x, m.integers([1]), m.integers([-1]), m.integers([1])]), tokens],
  Pad: [(m, x) => m.op('Pad', [x, m.integers([0, 1, 0, 0, 2, 3])]), tokens],
  Resize: [(m, x) => upsample2D(m, x), picture],
  QuickGelu: [(m, x, y) => m.add(silu(m, x), m.op('QuickGelu', [y], { alpha: 1.702 }, microsoft)), tokens, tokens],
  Gelu: [gelu, tokens],
  LayerNormalization: [
    (m, x, y) => {
      const groups = [m.exactly('ones', [1, 1, 1]), m.exactly('zeros', [0, 0, 0])];
      const ofGroups = m.op('InstanceNormalization', [m.reshape(y, 0, 3, -1), ...groups], { epsilon: 1e-5 });
      const [weight, bias] = [constant(m, [8]), m.exactly('bias', Array<number>(8).fill(0.5))];
      const attributes = { axis: 2, epsilon: 1e-5 };
      return m.concat([m.op('LayerNormalization', [x, weight, bias], attributes), m.reshape(ofGroups, 0, -1, 8)], 1);
    },
    tokens,
    picture,
  ],
  Tanh: [(m, x) => m.op('Tanh', [x]), tokens],
  SimplifiedLayerNormalization: [
    (m, x) => m.op('SimplifiedLayerNormalization', [x, constant(m, [8])], { epsilon: 1e-5 }),
    tokens,
  ],
  RotaryEmbedding: [
    (m, x, y) => {
      const [cos, sin] = ['cos', 'sin'].map((name, i) => m.exactly(name, [...random([10], i)], [5, 2]));
      const turned = [x, y].map((each, i) => rotaryEmbedding(m, each, { cos, sin, isInterleaved: i === 0 }));
      return m.concat(turned, 1);
    },
    tokens,
    tokens,
  ],
  Gather: [(m, x) => m.op('Gather', [x, m.integers([2, 0, 2])], { axis: 0 }), [3, 8]],
  GatherND: [
    (m, x) => m.op('GatherND', [x, m.op('Unsqueeze', [m.integers([4, 1]), m.integers([1])])], { batch_dims: 1 }),
    tokens,
  ],
  MatMul: [(m, x, y, z) => m.add(m.matmul(x, y), m.matmul(x, z)), tokens, [1, 8, 4], [2, 8, 4]],
  FusedMatMul: [
    (m, x, y, z) => m.add(matmulTransposed(m, x, y, 3), matmulTransposed(m, z, y, 3)),
    tokens,
    [1, 4, 8],
    [1, 5, 8],
  ],
  MultiHeadAttention: [
    (m, q, k, v) => m.add(attend(m, [q, k, v], 8, 4), attend(m, [q, q, q], 8, 2, true)),
    tokens,
    [2, 7, 8],
    [2, 7, 8],
  ],
  Conv: [
    (m, x) => {
      const attributes = { kernel_shape: [3, 3], pads: [1, 1, 1, 1] };
      const same = m.op('Conv', [x, constant(m, [3, 3, 3, 3])], { ...attributes, strides: [1, 1] });
      return m.op('Conv', [same, constant(m, [5, 3, 3, 3])], { ...attributes, strides: [2, 2] });
    },
    picture,
  ],
};

describe('The rules of reverse mode', () => {
  it('each have a case here', () => expect(Object.keys(layers).sort()).toEqual(Object.keys(rules).sort()));

  it.each(Object.keys(layers))('for %s give what finite differences do', async (operator) => {
    const [layer, ...shapes] = layers[operator];
    for (const way of [{}, { partOf: () => 'part' }, { mayCopyWeights: false }])
      for (const [gradient, expected] of await compare(layer, shapes, way))
        expect(Math.abs(gradient - expected)).toBeLessThan(1e-3 * Math.max(1, Math.abs(expected)));
  });

  it('name an operator that they do not know', async () => {
    const tangent: Layer = (m, x) => m.op('Softmax', [x], { axis: 2 });
    await expect(compare(tangent, [tokens])).rejects.toThrow(UnknownOperatorError);
    await expect(compare(tangent, [tokens])).rejects.toThrow('gradient of the operator Softmax');
  });
});
