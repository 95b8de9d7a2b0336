import { encodeOnnx, type GraphToWrite } from '../../../../test/support/onnx';
import { OnnxModel } from '../onnx/onnx-model';
import { FLOAT, FLOAT16 } from '../onnx/onnx-proto';
import { findWeightSites } from './lora-fit';

const model = (graph: GraphToWrite) => OnnxModel.from(encodeOnnx(graph), 'model.onnx');
const weight = (name: string, dims: number[], dataType = FLOAT) => ({
  name,
  dims,
  dataType,
  raw: new Uint8Array(dims.reduce((a, b) => a * b) * (dataType === FLOAT ? 4 : 2)),
});
const multiply = (op: string, value: string, name = '', ints = {}): GraphToWrite['nodes'][number] => ({
  op,
  name,
  inputs: ['x', value],
  outputs: ['y'],
  ints,
});

describe('findWeightSites', () => {
  it('uses the name of the node if the weight has lost its own', () => {
    const name = '/down_blocks.0/attentions.0/transformer_blocks.0/attn1/to_out.0/MatMul';
    const graph = model({
      nodes: [multiply('MatMul', 'onnx::MatMul_7', name)],
      initializers: [weight('onnx::MatMul_7', [3, 2])],
    });
    expect([...findWeightSites(graph)]).toEqual([
      [
        'down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_out_0',
        { initializer: graph.initializers.get('onnx::MatMul_7'), shape: [2, 3], transposed: true, cast: false },
      ],
    ]);
  });

  it('finds a weight by its own name behind a cast and a transposition', () => {
    const nodes: GraphToWrite['nodes'] = [
      { op: 'Cast', inputs: ['text_model.q.weight_f16'], outputs: ['text_model.q.weight'], ints: { to: [FLOAT] } },
      { op: 'Transpose', inputs: ['text_model.q.weight'], outputs: ['t'], ints: { perm: [1, 0] } },
      multiply('MatMul', 't', '/elsewhere/MatMul'),
    ];
    const graph = model({ nodes, initializers: [weight('text_model.q.weight_f16', [2, 3], FLOAT16)] });
    expect([...findWeightSites(graph).keys()]).toEqual(['q']);
    expect(findWeightSites(graph).get('q')).toMatchObject({ shape: [2, 3], transposed: false, cast: true });
  });

  it.each<[string, Partial<GraphToWrite>]>([
    ['is an input as well', { inputs: ['a.weight'] }],
    ['is read by another node', { nodes: [{ op: 'Relu', inputs: ['a.weight'], outputs: ['z'] }] }],
    [
      'is cast to another type too',
      { nodes: [{ op: 'Cast', inputs: ['a.weight'], outputs: ['z'], ints: { to: [7] } }] },
    ],
  ])('does not treat as only cast to float32 a weight that %s', (_, { nodes = [], inputs }) => {
    const cast = { op: 'Cast', inputs: ['a.weight'], outputs: ['c'], ints: { to: [FLOAT] } };
    const graph = (extra: GraphToWrite['nodes'], declared?: GraphToWrite['inputs']) =>
      model({
        nodes: [cast, multiply('Gemm', 'c', '', { transB: [1] }), ...extra],
        initializers: [weight('a.weight', [2, 3], FLOAT16)],
        inputs: declared,
      });
    expect(findWeightSites(graph([])).get('a')!.cast).toBe(true);
    expect(findWeightSites(graph(nodes, inputs)).get('a')!.cast).toBe(false);
  });

  it.each([
    ['Gemm with transB', 'Gemm', { transB: [1] }, [2, 3], false],
    ['Gemm', 'Gemm', {}, [3, 2], true],
    ['Conv', 'Conv', {}, [2, 3, 3, 3], false],
  ])('knows the layout of %s', (_, op, ints, dims, transposed) => {
    const graph = model({ nodes: [multiply(op, 'a.weight', '', ints)], initializers: [weight('a.weight', dims)] });
    const shape = transposed ? [2, 3] : dims;
    expect(findWeightSites(graph).get('a')).toMatchObject({ shape, transposed });
  });

  it('skips computed values, and does not loop on a cycle', () => {
    const nodes = [
      multiply('MatMul', 'x', '/a/MatMul'),
      { op: 'Cast', inputs: ['r'], outputs: ['s'] },
      { op: 'Cast', inputs: ['s'], outputs: ['r'] },
      multiply('MatMul', 'r', '/b/MatMul'),
    ];
    expect(findWeightSites(model({ nodes })).size).toBe(0);
  });
});
