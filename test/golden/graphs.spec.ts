import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import * as kl from '../../libs/diffusion/src/architectures/autoencoder-kl';
import * as tiny from '../../libs/diffusion/src/architectures/autoencoder-tiny';
import { clipTextConfigOf, clipTextModel } from '../../libs/diffusion/src/architectures/clip-text-model';
import { controlNetModel } from '../../libs/diffusion/src/architectures/control-net-model';
import * as unets from '../../libs/diffusion/src/architectures/unet-2d-condition-model';
import { ModelSession } from '../../libs/diffusion/src/sessions/model-session';
import { placeGraph } from '../../libs/diffusion/src/sessions/placed-graph';
import type { Graph } from '../../libs/diffusion/src/graph/graph';
import { conv, linear, matmulTransposed } from '../../libs/diffusion/src/graph/layers';
import { type BuiltGraph, Module } from '../../libs/diffusion/src/graph/module';
import { tokenizerOf } from '../../libs/diffusion/src/tokenizer/clip-tokenizer';
import { chunkPrompt } from '../../libs/diffusion/src/conditioners/prompt-chunks';
import { type NamedTensors, readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { type PartName, partsOfCheckpoint, withDiffusersNames } from '../../libs/diffusion/src/weights/original-names';
import { readOnnx } from '../../libs/diffusion/src/weights/onnx-file';
import { readPart, readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { unpackFamily } from '../support/families';

const folder = mkdtempSync(join(tmpdir(), 'graphs-'));
afterAll(() => rmSync(folder, { recursive: true }));

type Tensors = Record<string, Tensor>;

/** A part's weights, and the configuration that only a folder has. */
async function partOf(
  family: string,
  part: PartName,
): Promise<{ tensors: NamedTensors; json?: Record<string, unknown> }> {
  const isControl = part === 'controlnet';
  if (family.endsWith('-file')) {
    const file = join(folder, family, isControl ? 'control.safetensors' : 'model.safetensors');
    return { tensors: partsOfCheckpoint(await readSafetensors(file)).get(part)! };
  }
  const at = join(folder, family, isControl ? 'control' : `model/${part}`);
  const json = JSON.parse(readFileSync(join(at, 'config.json'), 'utf8')) as Record<string, unknown>;
  return { tensors: withDiffusersNames(part, await readPart(at)), json };
}

/** The outputs of a graph for some inputs; those that are not given are empty. */
async function run({ graph, unused }: BuiltGraph, inputs: Tensors): Promise<Tensors> {
  expect(unused.filter((name) => !/^(?:encoder|decoder|(?:post_)?quant_conv)\b/.test(name))).toEqual([]);
  const session = await ModelSession.open(placeGraph(graph, 'model'), cpu);
  const lengths = (shape: readonly (number | string)[]) =>
    shape.map((length) => (typeof length === 'number' ? length : 0));
  const empty = (shape: readonly (number | string)[]) => new Tensor('float32', new Float32Array(0), lengths(shape));
  try {
    return await session.run(
      Object.fromEntries(graph.inputs.map(({ name, shape }) => [name, inputs[name] ?? empty(shape!)])),
    );
  } finally {
    await session.release();
  }
}

/** The arrays of a family below a prefix. */
async function arrays(family: string, prefix: string): Promise<Tensors> {
  const all = await readSafetensors(join(folder, family, 'expected.safetensors'));
  const found = [...all].filter(([name]) => name.startsWith(prefix));
  const read = found.map(
    async ([name, tensor]) =>
      [name.slice(prefix.length), new Tensor('float32', await readValues(tensor), tensor.shape)] as const,
  );
  return Object.fromEntries(await Promise.all(read));
}

function expectClose(actual: Tensor, expected: Tensor, tolerance = 1e-5): void {
  expect(actual.dims).toEqual(expected.dims);
  const [values, others] = [actual.data as Float32Array, expected.data as Float32Array];
  const largest = Math.max(1, ...others.map(Math.abs));
  const difference = others.reduce((most, value, i) => Math.max(most, Math.abs(value - values[i])), 0);
  expect(difference / largest).toBeLessThan(tolerance);
}

/** One text of the cases, encoded: the hidden states after some layers are left out, and the pooled one. */
async function encode(family: string, part: PartName, skip: number, isPlain = false): Promise<Tensors> {
  const isXl = family.startsWith('sdxl');
  const { tensors, json = { hidden_act: /^sd21|_2$/.test(family + part) ? 'gelu' : 'quick_gelu' } } = await partOf(
    family,
    part,
  );
  const tokenizerFolder = join(folder, family, 'model', part.replace('text_encoder', 'tokenizer'));
  const padToken = /^sd21|_2$/.test(family + part) ? 'zero' : 'end';
  const tokenizer = await tokenizerOf(tokenizerFolder, { padToken });
  const [{ inputIds }] = chunkPrompt('a red circle above a blue square', tokenizer);
  const isPooled = part === 'text_encoder_2';
  const built = clipTextModel({ tensors, isPlain }, clipTextConfigOf(json), {
    skips: [skip],
    isNormed: !isXl,
    isPooled,
  });
  const output = await run(
    { ...built, unused: [] },
    { input_ids: new Tensor('int64', BigInt64Array.from(inputIds, BigInt), [1, inputIds.length]) },
  );
  return { states: output[`hidden_states.${skip}`], ...(isPooled && { pooled: output.text_embeds }) };
}

/** Of its nodes and of those in branches. */
const operatorsOf = ({ nodes }: Pick<Graph, 'nodes'>): Set<string> =>
  new Set(
    nodes.flatMap(({ opType, attributes }) => {
      const branches = Object.values(attributes).filter(
        (value): value is Graph => typeof value === 'object' && 'nodes' in value,
      );
      return [opType, ...branches.flatMap((branch) => [...operatorsOf(branch)])];
    }),
  );

const joined = ([a, b]: Tensor[]): Tensor => {
  const [rows, widths] = [a.dims[1], [a.dims[2], b.dims[2]]];
  const row = (t: Tensor, i: number, width: number) => [
    ...(t.data as Float32Array).subarray(i * width, (i + 1) * width),
  ];
  const values = Array.from({ length: rows }, (_, i) => [...row(a, i, widths[0]), ...row(b, i, widths[1])]).flat();
  return new Tensor('float32', Float32Array.from(values), [1, rows, widths[0] + widths[1]]);
};

const families = [
  'sd15',
  'sd15-file',
  'sd21',
  'sd21-base',
  'sd21-file',
  'sdxl',
  'sdxl-file',
  'lcm',
  'inpainting',
  'instruct-pix2pix',
];

describe.each(families)('The graphs of %s', (family) => {
  beforeAll(() => unpackFamily(family, join(folder, family)));

  const unetOf = async (part: 'unet' | 'controlnet') => {
    const { tensors, json } = await partOf(family, part);
    const heads = family === 'sd15-file' ? 8 : unets.headsOfWidth(64, tensors);
    if (json) return { tensors, config: unets.unetConfigOf(json) };
    const config = { ...unets.unetDefaults, numAttentionHeads: heads };
    const [, width] = tensors.get('add_embedding.linear_1.weight')?.shape ?? [];
    if (!width) return { tensors, config };
    const [pooled] = (await partOf(family, 'text_encoder_2')).tensors.get('text_projection.weight')!.shape;
    return { tensors, config: { ...config, additionTimeEmbedDim: (width - pooled) / 6 } };
  };

  it('predict the noise that diffusers does', async () => {
    const { tensors, config } = await unetOf('unet');
    const { output, ...inputs } = await arrays(family, 'unet.');
    for (const isPlain of [false, true])
      expectClose((await run(unets.unet2DConditionModel({ tensors, isPlain }, config), inputs)).out_sample, output);
  });

  it('have no product or attention that WebGPU would leave to the processor', async () => {
    const { tensors, config } = await unetOf('unet');
    const { graph } = unets.unet2DConditionModel({ tensors, isPlain: true, isAdapted: () => true }, config);
    expect([...operatorsOf(graph)].filter((name) => /^Fused|Attention$/.test(name))).toEqual([]);
  });

  it('encode and decode pictures', async () => {
    const { tensors, json = {} } = await partOf(family, 'vae');
    const config = kl.autoencoderKlConfigOf(json);
    const { picture, mean, logvar } = await arrays(family, 'vae.');
    const { latent_parameters: parameters } = await run(kl.autoencoderKlEncoder({ tensors }, config), {
      sample: picture,
    });
    const half = (parameters.data as Float32Array).length / 2;
    const part = (begin: number) =>
      new Tensor('float32', (parameters.data as Float32Array).slice(begin, begin + half), mean.dims);
    expectClose(part(0), mean);
    // It is cut to this range by whoever draws a sample.
    expectClose(
      new Tensor(
        'float32',
        part(half).data.map((v) => Math.min(20, Math.max(-30, v))),
        mean.dims,
      ),
      logvar,
    );
    const { latents, decoded } = await arrays(family, 'plain.');
    if (!decoded) return;
    const scaled = (latents.data as Float32Array).map(
      (value) => value / (family.startsWith('sdxl') ? 0.13025 : 0.18215),
    );
    const built = kl.autoencoderKlDecoder({ tensors }, config);
    const { sample } = await run(built, { latent_sample: new Tensor('float32', scaled, latents.dims) });
    expectClose(sample, decoded, 1e-3);
  });

  if (!/inpainting|pix2pix/.test(family))
    it('encode texts', async () => {
      const isXl = family.startsWith('sdxl');
      for (const [name, skipped] of [
        ['plain.', 0],
        ['clip-skip.', 1],
      ] as const) {
        const { prompt_embeds: expected, pooled_prompt_embeds: pooled } = await arrays(family, name);
        if (!expected) continue;
        const skip = skipped + Number(isXl || family === 'sd21-file');
        const first = await encode(family, 'text_encoder', skip);
        if (!isXl) {
          expectClose(first.states, expected);
          expectClose((await encode(family, 'text_encoder', skip, true)).states, expected);
        } else {
          const second = await encode(family, 'text_encoder_2', skip);
          expectClose(joined([first.states, second.states]), expected);
          expectClose(second.pooled, pooled);
        }
      }
    });

  if (['sd15', 'sd15-file', 'sdxl'].includes(family))
    it('are controlled by a ControlNet', async () => {
      const { hint, output, ...residuals } = await arrays(family, 'control.');
      const { output: _, ...inputs } = await arrays(family, 'unet.');
      const { tensors, config } = await unetOf('controlnet');
      const scale = new Tensor('float32', Float32Array.of(0.8, 0.8), [2]);
      const built = controlNetModel({ tensors }, config);
      const given = await run(built, { ...inputs, controlnet_cond: hint, conditioning_scale: scale });
      expectClose(given.mid_block_additional_residual, residuals.mid);
      for (let i = 0; residuals[`down.${i}`]; i++)
        expectClose(given[`down_block_additional_residuals.${i}`], residuals[`down.${i}`]);
      const unet = await unetOf('unet');
      const controlled = unets.unet2DConditionModel({ tensors: unet.tensors }, unet.config, true);
      expectClose((await run(controlled, { ...inputs, ...given })).out_sample, output);
    });
});

it('The graphs of the tiny autoencoder encode and decode pictures', async () => {
  await unpackFamily('taesd', join(folder, 'taesd'));
  const tensors = await readPart(join(folder, 'taesd', 'model'));
  const { picture, latents, decoded } = await arrays('taesd', 'vae.');
  expectClose((await run(tiny.autoencoderTinyEncoder({ tensors }), { sample: picture })).latents, latents);
  expectClose((await run(tiny.autoencoderTinyDecoder({ tensors }), { latent_sample: latents })).sample, decoded);
});

describe('An adapter as inputs', () => {
  const [rows, rank] = [2, 3];
  const random = (...shape: number[]) => {
    const length = shape.reduce((product, one) => product * one, 1);
    return new Tensor(
      'float32',
      Float32Array.from({ length }, () => Math.random() - 0.5),
      shape,
    );
  };
  const rowOf = (tensor: Tensor, row: number): Tensor => {
    const size = tensor.data.length / tensor.dims[0];
    const values = (tensor.data as Float32Array).slice(row * size, (row + 1) * size);
    return new Tensor('float32', values, [1, ...tensor.dims.slice(1)]);
  };
  const mapOf = (inputs: Tensors, change: (tensor: Tensor) => Tensor) =>
    Object.fromEntries(Object.entries(inputs).map(([name, tensor]) => [name, change(tensor)]));

  /** A linear layer, or a convolution that halves an odd size, with this weight. */
  async function layer(shape: number[], weight: Float32Array, isPlain: boolean): Promise<BuiltGraph> {
    const file = join(mkdtempSync(join(folder, 'layer-')), 'w.bin');
    writeFileSync(file, weight);
    const tensors = new Map([['it.weight', { name: 'it.weight', type: 'F32' as const, shape, file, offset: 0 }]]);
    const m = Module.of({ tensors, isPlain, isAdapted: () => true });
    const axes = (name: string) => Array.from({ length: shape.length === 4 ? 4 : 3 }, (_, i) => `${name}:${i}`);
    const x = m.input('x', axes('x'));
    m.output('y', shape.length === 4 ? conv(m, x, 'it', { stride: 2 }) : linear(m, x, 'it'), axes('y'));
    return m.finish();
  }

  it.each([
    ['a linear layer', [5, 4], [7, 4], false],
    ['a linear layer of WebGPU', [5, 4], [7, 4], true],
    ['a convolution', [5, 4, 3, 3], [4, 7, 9], false],
  ])('gives %s the result of merged weights, and each row its own', async (_, shape, input, isPlain) => {
    const weight = random(...shape).data;
    const x = random(rows, ...input);
    const [a, b] = [random(rows, rank, ...shape.slice(1)), random(rows, shape[0], rank)];
    const inputs = { x, 'it.lora_A': a, 'it.lora_B': b };
    const graph = await layer(shape, weight, isPlain);
    const { y } = await run(graph, inputs);
    const columns = weight.length / shape[0];
    for (let row = 0; row < rows; row++) {
      const [down, up] = [rowOf(a, row), rowOf(b, row)].map(({ data }) => data as Float32Array);
      const merged = weight.map((value, i) => {
        const [out, at] = [Math.floor(i / columns), i % columns];
        return (
          value +
          Array.from({ length: rank }, (_, r) => up[out * rank + r] * down[r * columns + at]).reduce((p, q) => p + q)
        );
      });
      const alone = await run(await layer(shape, merged, isPlain), { x: rowOf(x, row) });
      expectClose(rowOf(y, row), alone.y);
      expect(
        (
          await run(
            graph,
            mapOf(inputs, (tensor) => rowOf(tensor, row)),
          )
        ).y.data,
      ).toEqual(rowOf(y, row).data);
    }
  });
});

it.each([2, 3, 4])('A product with a transposed factor of %s axes is the same on WebGPU', async (axes) => {
  const outer = Array<number>(axes - 2).fill(2);
  const valuesOf = (...dims: number[]) =>
    new Tensor(
      'float32',
      Float32Array.from({ length: dims.reduce((a, b) => a * b) }, (_, i) => Math.sin(i)),
      dims,
    );
  const [x, y] = [valuesOf(...outer, 3, 5), valuesOf(...outer, 4, 5)];
  const products = [true, false].map(async (isPlain) => {
    const m = Module.of({ tensors: new Map(), isPlain });
    m.output('xy', matmulTransposed(m, m.input('x', x.dims), m.input('y', y.dims), axes), [...outer, 3, 4]);
    // Not as it is optimised: ONNX Runtime makes one operator of both for the processor, without a look at the axes.
    const { bytes } = placeGraph(m.finish().graph, 'model');
    const session = await InferenceSession.create(bytes, { graphOptimizationLevel: 'disabled' });
    return (await session.run({ x, y })).xy;
  });
  const [plain, fused] = await Promise.all(products);
  expectClose(plain, fused);
});

it.each(['sd15-diffusers', 'sd21-optimum'])(
  'An export of %s has weights with which our graph equals it',
  async (name) => {
    const at = join('test/golden/models/tiny', name, 'unet');
    const json = JSON.parse(readFileSync(join(at, 'config.json'), 'utf8')) as Record<string, unknown>;
    const built = unets.unet2DConditionModel({ tensors: readOnnx(join(at, 'model.onnx')) }, unets.unetConfigOf(json));
    const [sample, context] = ['sample', 'encoder_hidden_states'].map((input) => {
      const { shape = [] } = built.graph.inputs.find((each) => each.name === input)!;
      const lengths = shape.map((length, axis) => (typeof length === 'number' ? length : [2, 7, 16, 16][axis]));
      const values = Float32Array.from({ length: lengths.reduce((a, b) => a * b) }, (_, i) => Math.sin(i * 0.7));
      return new Tensor('float32', values, lengths);
    });
    const export_ = await InferenceSession.create(join(at, 'model.onnx'));
    const timestep = new Tensor('float32', Float32Array.of(500, 500), [2]);
    const given = { sample, encoder_hidden_states: context };
    const metadata = export_.inputMetadata.find((each) => each.name === 'timestep')!;
    const { shape: axes } = metadata as unknown as { shape: unknown[] };
    const own = new Tensor('int64', BigInt64Array.of(500n), axes.length === 0 ? [] : [1]);
    const { out_sample: expected } = await export_.run({ ...given, timestep: own });
    expectClose((await run({ ...built, unused: [] }, { ...given, timestep })).out_sample, expected);
  },
);
