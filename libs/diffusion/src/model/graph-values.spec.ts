import { encodeGraph, encodeNode, encodeOnnx, encodeWeights } from '../../../../test/support/onnx';
import { OnnxModel } from '../onnx/onnx-model';
import {
  decoderValues,
  type GraphValues,
  textEncoderValues,
  unetValues,
  type ValueFacts,
  valuesOf,
} from './graph-values';

describe(valuesOf.name, () => {
  const read = (bytes: Buffer): GraphValues | undefined => valuesOf(OnnxModel.from(bytes, 'model.onnx'));
  const [x, w, y] = ['x', 'w', 'y'].map((name) => ({ name, shape: ['batch', 4] }));

  it('leaves out a constant among the inputs', () => {
    const sum = encodeNode('Add', ['x', 'w'], 'y');
    const one = encodeWeights('w', [1], () => 1);
    const facts = { type: 'float32', shape: ['', 4] };
    expect(read(encodeGraph([sum], [one], [x, w], y))).toEqual({
      file: 'model.onnx',
      inputs: [{ name: 'x', ...facts }],
      outputs: [{ name: 'y', ...facts }],
    });
  });

  it('names the types that no runtime here can be given', () => {
    const graph = OnnxModel.from(encodeGraph([encodeNode('Relu', ['x'], 'y')], [], [x], y), 'model.onnx');
    for (const [number, type] of [
      [16, 'bfloat16'],
      [17, 'float8e4m3fn'],
      [20, 'float8e5m2fnuz'],
    ] as const) {
      graph.types.set('x', number);
      expect(valuesOf(graph)?.inputs).toEqual([{ name: 'x', type, shape: ['', 4] }]);
    }
  });

  it('says nothing of a graph that leaves a type open', () =>
    expect(
      read(encodeOnnx({ nodes: [{ op: 'Sigmoid', inputs: ['x'], outputs: ['y'] }], inputs: ['x'] })),
    ).toBeUndefined());
});

describe('the graph of a part', () => {
  const value = (name: string, type = 'float32', rank = 4): ValueFacts => ({
    name,
    type,
    shape: Array.from({ length: rank }, () => ''),
  });
  const [sample, timestep, prompt] = [value('sample'), value('timestep', 'int64', 1), value('encoder_hidden_states')];
  const graph = (inputs: ValueFacts[], outputs = [value('out')]): GraphValues => ({
    file: 'model.onnx',
    inputs,
    outputs,
  });

  it.each<[what: string, read: () => unknown, message: string]>([
    [
      'a U-Net without a timestep',
      () => unetValues(graph([sample, prompt])),
      'it takes sample, encoder_hidden_states,',
    ],
    ['a decoder without inputs', () => decoderValues(graph([])), 'it takes nothing, where a VAE decoder takes latents'],
    ['a U-Net without inputs', () => unetValues(graph([])), 'it takes nothing, where a U-Net takes latents,'],
    [
      'timesteps that are texts',
      () => unetValues(graph([sample, value('timestep', 'string', 1), prompt])),
      'takes or gives timestep as string, where only float32 or float16 or int64 or int32 can be used',
    ],
    [
      'a guidance of unknown width',
      () => unetValues(graph([sample, timestep, prompt, value('timestep_cond', 'float32', 2)])),
      'takes timestep_cond, and nothing tells its width',
    ],
    [
      'tokens that are fractions',
      () => textEncoderValues(graph([value('input_ids', 'float32', 2)])),
      'takes or gives input_ids as float32, where only int32 or int64 can be used',
    ],
    [
      'an attention mask',
      () => textEncoderValues(graph([value('input_ids', 'int64', 2), value('attention_mask', 'int64', 2)])),
      'takes input_ids, attention_mask, where a CLIP text encoder takes token ids alone',
    ],
    ['no output', () => decoderValues(graph([sample], [])), 'has no output'],
  ])('is refused for %s', (_, read, message) => expect(read).toThrow(message));

  it('tells what it fixes', () =>
    expect(unetValues(graph([{ ...sample, shape: [2, 4, '', 64] }, timestep, prompt]))).toMatchObject({
      fixedRows: 2,
      facts: { inChannels: 4, height: undefined, width: 64 },
    }));
});
