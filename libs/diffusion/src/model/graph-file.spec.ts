import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeOnnx } from '../../../../test/support/onnx';
import { readGraphFile } from './graph-file';

describe(readGraphFile, () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-graph-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const operatorOf = async (op: string, inputs = ['x']) => {
    const path = join(folder, 'model.onnx');
    const sigmoid = { op: 'Sigmoid', inputs: ['x'], outputs: ['z'] };
    await writeFile(path, encodeOnnx({ nodes: [sigmoid, { op, inputs, outputs: ['y'] }] }));
    return (await readGraphFile(path)).cudaOperator;
  };

  it.each(['GroupNorm', 'BiasSplitGelu', 'NhwcConv', 'NhwcFusedConv', 'GemmFastGelu'])(
    'names %s as an operator of CUDA',
    async (op) => {
      await expect(operatorOf(op)).resolves.toBe(op);
    },
  );

  it.each(['FastGelu', 'FusedConv', 'BiasGelu', 'SkipLayerNormalization', 'GroupNormalization'])(
    'names no operator if there is only %s, which the CPU supports too',
    async (op) => {
      await expect(operatorOf(op)).resolves.toBeUndefined();
    },
  );

  it('tells attention with packed inputs from attention that the CPU supports', async () => {
    const packed = 'MultiHeadAttention with packed inputs';
    await expect(operatorOf('MultiHeadAttention', ['qkv'])).resolves.toBe(packed);
    await expect(operatorOf('MultiHeadAttention', ['query', 'key_value', '', 'bias'])).resolves.toBe(packed);
    await expect(operatorOf('MultiHeadAttention', ['query', 'key', 'value'])).resolves.toBeUndefined();
  });
});
