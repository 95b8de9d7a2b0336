import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AdapterInputs, type LayerAdapters } from '../../libs/diffusion/src/adapters/row-adapters';
import {
  autoencoderKlFlux2ConfigOf,
  autoencoderKlFlux2Decoder,
  autoencoderKlFlux2Encoder,
} from '../../libs/diffusion/src/architectures/autoencoder-kl-flux2';
import { decoderModel } from '../../libs/diffusion/src/architectures/decoder-model';
import {
  ernieImagePositions,
  ernieImageTransformer2DModel,
  ernieImageTransformerConfigOf,
} from '../../libs/diffusion/src/architectures/ernie-image-transformer-2d-model';
import {
  flux2Positions,
  flux2Transformer2DModel,
  flux2TransformerConfigOf,
} from '../../libs/diffusion/src/architectures/flux2-transformer-2d-model';
import { mistralConfigOf } from '../../libs/diffusion/src/architectures/mistral-model';
import { qwen3ConfigOf } from '../../libs/diffusion/src/architectures/qwen3-model';
import {
  zImagePositions,
  zImageTransformer2DModel,
  zImageTransformerConfigOf,
} from '../../libs/diffusion/src/architectures/z-image-transformer-2d-model';
import { type DataType, dataTypes, type Graph, type ValueInfo } from '../../libs/diffusion/src/graph/graph';
import type { BuiltGraph, ModuleOptions } from '../../libs/diffusion/src/graph/module';
import { ModelSession } from '../../libs/diffusion/src/sessions/model-session';
import { placeGraph } from '../../libs/diffusion/src/sessions/placed-graph';
import {
  bool,
  float32,
  floatsOf,
  int32,
  int64,
  type Tensor,
  type Tensors,
} from '../../libs/diffusion/src/sessions/tensor';
import { type NamedTensors, readValues, tensorTypes } from '../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { randomFrom } from '../../bench/section';
import { cpu } from '../support/cpu';
import { unpackFolder } from '../support/families';
import { hasCuda } from '../support/has-cuda';

interface RecordedClass {
  /** Of its files. */
  name: string;
  build: (options: ModuleOptions) => BuiltGraph;
  output: string;
  /** As the cases call it, where that is another name. */
  recorded?: string;
  /** Inputs that no case has, for those that it has. */
  added?: (inputs: Tensors) => Tensors;
  /** Weights of layers that nobody asks for. */
  unused?: RegExp;
}

const flux2Config = flux2TransformerConfigOf({ axes_dims_rope: [4, 4, 4, 4] });

const zImageConfig = zImageTransformerConfigOf({ axes_dims: [4, 6, 6] });

const ernieImageConfig = ernieImageTransformerConfigOf({ rope_axes_dim: [4, 6, 6] });

const transformers: RecordedClass[] = [
  {
    name: 'flux2',
    build: (options) => flux2Transformer2DModel(options, flux2Config),
    output: 'out_sample',
    added: ({ sample, encoder_hidden_states: { dims } }) => {
      const [rows, channels, height, width] = sample.dims;
      return {
        references: float32(new Float32Array(0), [rows, 0, channels]),
        ...rotaryOf(flux2Positions(dims[1], { height, width }, [], flux2Config)),
      };
    },
  },
  {
    name: 'z_image',
    build: (options) => zImageTransformer2DModel(options, zImageConfig),
    output: 'out_sample',
    added: ({ sample, encoder_hidden_states: { dims } }) =>
      rotaryOf(zImagePositions(dims[1], sample.dims[2], sample.dims[3], zImageConfig)),
  },
  {
    name: 'ernie_image',
    build: (options) => ernieImageTransformer2DModel(options, ernieImageConfig),
    output: 'out_sample',
    added: ({ sample, encoder_hidden_states: { dims } }) =>
      rotaryOf(ernieImagePositions(dims[1], { height: sample.dims[2], width: sample.dims[3] }, ernieImageConfig)),
  },
  {
    name: 'mistral',
    build: (options) => decoderModel(options, mistralConfigOf({ text_config: { head_dim: 16 } }), [0, 2, 4]),
    output: 'hidden_states',
    unused: /^(?:layers\.4|norm)\b/,
  },
  {
    name: 'qwen3',
    build: (options) => decoderModel(options, qwen3ConfigOf({ rope_parameters: { rope_theta: 1e6 } }), [0, 2, 4]),
    output: 'hidden_states',
    unused: /^(?:model\.)?(?:layers\.4|norm)\b|^lm_head/,
  },
];

const autoencoderConfig = autoencoderKlFlux2ConfigOf({ norm_num_groups: 8 });

const autoencoders: RecordedClass[] = [
  {
    name: 'flux2_autoencoder',
    build: (options) => autoencoderKlFlux2Decoder(options, autoencoderConfig),
    output: 'sample',
    recorded: 'decoded',
    unused: /^(?:encoder|quant_conv)\b/,
  },
  {
    name: 'flux2_autoencoder',
    build: (options) => autoencoderKlFlux2Encoder(options, autoencoderConfig),
    output: 'latents',
    unused: /^(?:decoder|post_quant_conv)\b/,
  },
];

function rotaryOf({ cos, sin, positions }: ReturnType<typeof flux2Positions>): Tensors {
  const tensor = (values: Float32Array) => float32(values, [positions, values.length / positions]);
  return { rotary_cos: tensor(cos), rotary_sin: tensor(sin) };
}

const folder = mkdtempSync(join(tmpdir(), 'transformers-'));
beforeAll(() => unpackFolder(join(__dirname, 'transformers'), folder));
afterAll(() => rmSync(folder, { recursive: true }));

const weightsOf = ({ name }: RecordedClass): Promise<NamedTensors> =>
  readSafetensors(join(folder, `${name}.weights.safetensors`));

/** Inputs and the output of each recorded call. */
async function casesOf({ name, output, recorded: key = output, added }: RecordedClass, { graph }: BuiltGraph) {
  const found: { inputs: Tensors; expected: Tensor }[] = [];
  const recorded = await readSafetensors(join(folder, `${name}.cases.safetensors`));
  const tensorOf = async (key: string, type: DataType = 'float32'): Promise<Tensor> => {
    const { shape } = recorded.get(key)!;
    const values = await readValues(recorded.get(key)!);
    if (type === 'int64') return int64(BigInt64Array.from([...values], BigInt), shape);
    if (type === 'int32') return int32(Int32Array.from(values), shape);
    return type === 'bool' ? bool(Uint8Array.from(values), shape) : float32(values, shape);
  };
  for (let i = 0; recorded.has(`${i}.${key}`); i++) {
    const inputs: Record<string, Tensor> = {};
    for (const one of graph.inputs)
      if (recorded.has(`${i}.${one.name}`)) inputs[one.name] = await tensorOf(`${i}.${one.name}`, one.type);
    found.push({ inputs: { ...inputs, ...added?.(inputs) }, expected: await tensorOf(`${i}.${key}`) });
  }
  return found;
}

/** @param isKept whether weights in half precision are widened in each call, as those of large models are */
function open({ graph }: BuiltGraph, threads = 1, isKept = false): Promise<ModelSession> {
  const placed = placeGraph(graph, 'model');
  return ModelSession.open(isKept ? { ...placed, widenedBytes: Infinity } : placed, {
    ...cpu,
    intraOpNumThreads: threads,
  });
}

function relativeError(actual: Tensor, expected: Tensor): number {
  expect(actual.dims).toEqual(expected.dims);
  const [values, others] = [floatsOf(actual), floatsOf(expected)];
  return (
    others.reduce((most, value, i) => Math.max(most, Math.abs(value - values[i])), 0) /
    Math.max(...others.map(Math.abs))
  );
}

const bytesOf = (tensor: Tensor): Buffer => {
  const { buffer, byteOffset, byteLength } = floatsOf(tensor);
  return Buffer.from(buffer, byteOffset, byteLength);
};

/** One row of the inputs that have a row for each of the batch. */
function rowOf(inputs: Tensors, rows: number, row: number): Tensors {
  const own = Object.entries(inputs).map(([name, tensor]) => {
    if (name.startsWith('rotary')) return [name, tensor];
    const values = floatsOf(tensor);
    const size = values.length / rows;
    const dims = [1, ...tensor.dims.slice(1)];
    return [name, { ...tensor, data: values.slice(row * size, (row + 1) * size), dims }];
  });
  return Object.fromEntries(own) as Tensors;
}

/** Adapters of all layers of a graph: of a low rank, and of one that is computed in groups. */
function adaptersOf(inputs: readonly ValueInfo[], seed: number): LayerAdapters {
  const random = randomFrom(seed);
  const values = (length: number) => Float32Array.from({ length }, () => (random() - 0.5) / 4);
  const paths = inputs.flatMap(({ name }) => (name.endsWith('.lora_A') ? [name.slice(0, -'.lora_A'.length)] : []));
  const lengthOf = (name: string, axis: number) => inputs.find((one) => one.name === name)!.shape![axis] as number;
  return new Map(
    paths.map((path, i) => {
      const [rank, into, out] = [i % 2 ? 4 : 20, lengthOf(`${path}.lora_A`, 2), lengthOf(`${path}.lora_B`, 1)];
      return [path, { rank, a: values(rank * into), b: values(out * rank) }];
    }),
  );
}

/** Operators that have a kernel for bfloat16 in ONNX Runtime 1.30 on CUDA: of any type, and of this one. */
const bfloat16Operators = [
  ...['Concat', 'Expand', 'Gather', 'Identity', 'If', 'Reshape', 'Size', 'Shape', 'Slice', 'Split', 'Transpose'],
  ...['Add', 'Cast', 'FusedMatMul', 'Gelu', 'LayerNormalization', 'MatMul', 'Mul', 'MultiHeadAttention', 'QuickGelu'],
  ...['RotaryEmbedding', 'SimplifiedLayerNormalization', 'Tanh', 'Unsqueeze', 'Where'],
];

/** Those that compute the embedding of the time, or angles. */
const exactOperators = ['Cast', 'Concat', 'Cos', 'Mul', 'Reshape', 'Sin', 'Unsqueeze'];

/**
 * Finds the type of each value, and checks those that a node computes with.
 * @returns the type of a value
 */
function typesOf(graph: Graph, outer: ReadonlyMap<string, number> = new Map()): (name: string) => number | undefined {
  const { bfloat16, int64, float32: exact } = dataTypes;
  const types = new Map(outer);
  for (const [name, one] of graph.initializers)
    types.set(name, 'file' in one ? tensorTypes[one.type].onnx : dataTypes[one.type]);
  for (const { name, type } of graph.inputs) types.set(name, dataTypes[type]);
  for (const { name, opType, inputs, outputs, attributes } of graph.nodes) {
    const given = inputs.map((input) => types.get(input)).filter((type) => type === exact || type === bfloat16);
    expect([name, new Set(given).size]).toEqual([name, Math.min(1, given.length)]);
    if (given.length > 0) expect(given[0] === bfloat16 ? bfloat16Operators : exactOperators).toContain(opType);
    const [first, second] = inputs.map((input) => types.get(input)!);
    const { to, then_branch: branch } = attributes as { to?: number; then_branch?: Graph };
    const type = opType === 'Where' ? second : /^(?:Shape|Size)$/.test(opType) ? int64 : first;
    const own = branch && typesOf(branch, types)(branch.outputs[0].name);
    for (const output of outputs) types.set(output, to ?? own ?? type);
  }
  return (name) => types.get(name);
}

describe.each([...transformers, ...autoencoders])('The graph of $name to $output', (one) => {
  it('gives what its class does', async () => {
    const tensors = await weightsOf(one);
    for (const isPlain of [false, true]) {
      const built = one.build({ tensors, isPlain, isSteady: !isPlain });
      expect(built.unused.filter((name) => !one.unused?.test(name))).toEqual([]);
      const session = await open(built);
      for (const { inputs, expected } of await casesOf(one, built))
        expect(relativeError((await session.run(inputs))[one.output], expected)).toBeLessThan(1e-5);
      await session.release();
    }
  });

  it('widens weights before all else, so that each is widened right before its use', async () => {
    const { graph } = one.build({ tensors: await weightsOf(one) });
    const isWidening = graph.nodes.map(({ opType, inputs }) => opType === 'Cast' && graph.initializers.has(inputs[0]));
    expect(isWidening.indexOf(false)).toBe(isWidening.filter(Boolean).length);
    expect(isWidening[0]).toBe(true);
  });

  it('has no node, input or weight that its output does not need', async () => {
    const { graph } = one.build({ tensors: await weightsOf(one), isAdapted: () => true });
    const needed = new Set(graph.outputs.map(({ name }) => name));
    const visit = ({ nodes, outputs }: Graph): void => {
      for (const { name } of outputs) needed.add(name);
      for (const node of nodes.toReversed()) {
        expect([node.name, node.outputs.some((name) => needed.has(name))]).toEqual([node.name, true]);
        for (const name of node.inputs) needed.add(name);
        for (const value of Object.values(node.attributes))
          if (typeof value === 'object' && 'nodes' in value) visit(value);
      }
    };
    visit(graph);
    for (const name of [...graph.initializers.keys(), ...graph.inputs.map((input) => input.name)])
      expect([name, needed.has(name)]).toEqual([name, true]);
  });
});

describe.each(transformers)('The graph of $name', (one) => {
  it.each([
    [1, false],
    [2, false],
    [1, true],
    [2, true],
  ])(
    'gives each row the bits that it has alone: %d threads, weights widened in each call %s',
    async (threads, isKept) => {
      const built = one.build({ tensors: await weightsOf(one), isAdapted: () => true, isSteady: true });
      const session = await open(built, threads, isKept);
      const adapters = new AdapterInputs(session.inputs);
      const [first, second] = [1, 2].map((seed) => adaptersOf(built.graph.inputs, seed));
      const none: LayerAdapters = new Map();
      for (const { inputs, expected } of await casesOf(one, built))
        for (const all of [
          [first, none, second],
          [first, first, first],
        ]) {
          const rows = expected.dims[0];
          const given = all.slice(0, rows);
          const together = bytesOf((await session.run({ ...inputs, ...adapters.feeds(given) }))[one.output]);
          for (const [row, own] of given.entries()) {
            const feeds = { ...rowOf(inputs, rows, row), ...adapters.feeds([own]) };
            const alone = bytesOf((await session.run(feeds))[one.output]);
            expect(alone.equals(together.subarray(row * alone.length, (row + 1) * alone.length))).toBe(true);
          }
        }
      await session.release();
    },
  );

  it('computes in bfloat16 with operators that CUDA has for it, and exactly in the time and angles', async () => {
    const built = one.build({ tensors: await weightsOf(one), isAdapted: () => true, precision: 'bfloat16' });
    // ONNX Runtime checks all types before it looks for kernels, which the processor lacks.
    await expect(open(built)).rejects.toThrow(/Could not find an implementation for \w+/);
    const { graph } = built;
    const typeOf = typesOf(graph);
    for (const { name, type } of [...graph.inputs, ...graph.outputs]) expect(typeOf(name)).toBe(dataTypes[type]);
    const products = graph.nodes.filter(({ opType }) => /MatMul|Attention/.test(opType));
    for (const { name } of products) expect([name, typeOf(name)]).toEqual([name, dataTypes.bfloat16]);
  });

  (hasCuda() ? it : it.skip)('gives on CUDA, in bfloat16, what its class does', async () => {
    const built = one.build({ tensors: await weightsOf(one), isAdapted: () => true, precision: 'bfloat16' });
    const session = await ModelSession.open(placeGraph(built.graph, 'model'), { device: 'cuda:0' });
    const adapters = new AdapterInputs(session.inputs);
    for (const { inputs, expected } of await casesOf(one, built)) {
      const { [one.output]: actual } = await session.run({ ...inputs, ...adapters.feeds([new Map()]) });
      expect(relativeError(actual, expected)).toBeLessThan(5e-2);
    }
    await session.release();
  });

  it('is the same without adapters and with those of rank 0', async () => {
    const tensors = await weightsOf(one);
    const [plain, adapted] = [false, true].map((isAdapted) =>
      one.build({ tensors, isAdapted: () => isAdapted, isSteady: true }),
    );
    const [without, session] = [await open(plain), await open(adapted)];
    const adapters = new AdapterInputs(session.inputs);
    for (const { inputs } of await casesOf(one, plain)) {
      const { [one.output]: expected } = await without.run(inputs);
      const { [one.output]: actual } = await session.run({ ...inputs, ...adapters.feeds([new Map()]) });
      expect(bytesOf(actual).equals(bytesOf(expected))).toBe(true);
    }
    await without.release();
    await session.release();
  });
});
