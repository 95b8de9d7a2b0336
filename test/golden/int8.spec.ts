import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  fitAdapter,
  loadAdapter,
  readAdapter,
  readModelFolder,
  type RgbImage,
  Pipeline,
  writeMerged,
} from '@app/diffusion';
import type { Value } from '../../libs/diffusion/src/graph/graph';
import { linear } from '../../libs/diffusion/src/graph/layers';
import { Module } from '../../libs/diffusion/src/graph/module';
import { ModelSession } from '../../libs/diffusion/src/sessions/model-session';
import { placeGraph } from '../../libs/diffusion/src/sessions/placed-graph';
import { float32, type Tensor, type Tensors } from '../../libs/diffusion/src/sessions/tensor';
import { rotate, rotationOf } from '../../libs/diffusion/src/tensor/hadamard';
import { stableDiffusion1 } from '../../libs/diffusion/src/families/stable-diffusion-1';
import { planConversion } from '../../libs/diffusion/src/weights/convert-weights';
import { int8Metadata } from '../../libs/diffusion/src/weights/int8-form';
import { readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { readPart, readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { randomFrom } from '../../bench/section';
import { cpu } from '../support/cpu';
import { unpackFamily } from '../support/families';
import { psnr } from '../support/psnr';
import { encodeSafetensors, type TensorToWrite } from '../support/safetensors';

const folder = mkdtempSync(join(tmpdir(), 'int8-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Values of a normal distribution. */
function normal(count: number, seed: number): Float32Array {
  const random = randomFrom(seed);
  return Float32Array.from(
    { length: count },
    () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
  );
}

/** A weight [out, in] as whole numbers and a scale for each output. */
function quantised(weight: Float32Array, out: number, rotation: number) {
  const values = weight.slice();
  rotate(values, rotation);
  const width = values.length / out;
  const scales = Array.from({ length: out }, (_, row) =>
    Math.fround(Math.max(...values.subarray(row * width, (row + 1) * width).map(Math.abs)) / 127),
  );
  return { values: values.map((value, i) => Math.round(value / scales[Math.floor(i / width)])), scales };
}

let files = 0;

/** A file with layers of [out, in] in int8. */
function int8File(layers: Record<string, Float32Array>, out: number, rotation: number): string {
  const file = join(folder, `${files++}.safetensors`);
  const tensors: Record<string, TensorToWrite> = {};
  for (const [name, weight] of Object.entries(layers)) {
    const { values, scales } = quantised(weight, out, rotation);
    tensors[`${name}.weight`] = { dtype: 'I8', shape: [out, values.length / out], values };
    tensors[`${name}.weight_scale`] = { shape: [out, 1], values: scales };
  }
  const metadata = int8Metadata(new Map(Object.keys(layers).map((name) => [name, rotation])));
  writeFileSync(file, encodeSafetensors(tensors, metadata));
  return file;
}

async function open(file: string, width: number, write: (m: Module, x: Value) => Value, threads = 2, isSteady = true) {
  const m = Module.of({ tensors: await readSafetensors(file), isAdapted: (path) => path !== 'plain', isSteady });
  m.output('y', write(m, m.input('x', ['rows', 'tokens', width])), ['rows', 'tokens', 'out']);
  return ModelSession.open(placeGraph(m.finish().graph, file), { device: 'cpu', intraOpNumThreads: threads });
}

/** x W of [out, in], in double precision. */
function product(x: Float32Array, weight: Float32Array, out: number): Float64Array {
  const width = weight.length / out;
  const y = new Float64Array((x.length / width) * out);
  for (let at = 0; at < y.length; at++) {
    const [token, row] = [Math.floor(at / out) * width, (at % out) * width];
    for (let i = 0; i < width; i++) y[at] += x[token + i] * weight[row + i];
  }
  return y;
}

/** Root of the mean square of the errors, relative to that of the values. */
function relativeError(values: ArrayLike<number>, wanted: ArrayLike<number>): number {
  let [error, size] = [0, 0];
  for (let i = 0; i < wanted.length; i++) {
    error += (values[i] - wanted[i]) ** 2;
    size += wanted[i] ** 2;
  }
  return Math.sqrt(error / size);
}

const runData = async (session: ModelSession, feeds: Tensors): Promise<Float32Array> =>
  (await session.run(feeds)).y.data as Float32Array;

describe('A linear layer in int8', () => {
  const [tokens, width, out] = [64, 1024, 96];
  const weight = normal(out * width, 1);

  it.each([
    ['of random inputs', 1, 256, 1.3e-2],
    ['with eight inputs fifty times as large', 50, 256, 1.5e-2],
    ['with the same and without a rotation', 50, 1, 1.2e-1],
  ])('gives the product %s', async (_, factor, rotation, most) => {
    const x = normal(tokens * width, 2).map((value, i) => (i % (width / 8) === 0 ? factor * value : value));
    const wanted = product(x, weight, out);
    const session = await open(int8File({ plain: weight }, out, rotation), width, (m, v) => linear(m, v, 'plain'));
    const error = relativeError(await runData(session, { x: float32(x, [1, tokens, width]) }), wanted);
    await session.release();
    expect(error).toBeLessThan(most);
    if (rotation === 1) expect(error).toBeGreaterThan(3e-2);
  });

  it('gives zeros for tokens of zeros', async () => {
    const session = await open(int8File({ plain: weight }, out, 256), width, (m, v) => linear(m, v, 'plain'));
    const y = await runData(session, { x: float32(new Float32Array(2 * width), [1, 2, width]) });
    await session.release();
    expect(y.every((value) => value === 0)).toBe(true);
  });

  it('is read as the numbers that it stands for, and computed with them where there is no product of int8', async () => {
    const file = int8File({ plain: weight }, out, 64);
    const values = await readValues((await readSafetensors(file)).get('plain.weight')!);
    expect(relativeError(values, weight)).toBeLessThan(1e-2);
    const x = normal(tokens * width, 3);
    const session = await open(file, width, (m, v) => linear(m, v, 'plain'), 2, false);
    const y = await runData(session, { x: float32(x, [1, tokens, width]) });
    await session.release();
    expect(relativeError(y, product(x, values, out))).toBeLessThan(1e-6);
  });

  it('shares the quantised input with the other layers that take it', async () => {
    const layers = { 'a.plain': weight, 'b.plain': normal(out * width, 4) };
    const m = Module.of({ tensors: await readSafetensors(int8File(layers, out, 256)), isSteady: true });
    const x = m.input('x', ['rows', 'tokens', width]);
    m.add(linear(m, x, 'a.plain'), linear(m, x, 'b.plain'));
    const types = m.finish().graph.nodes.map(({ opType }) => opType);
    expect(['QuantizeLinear', 'QGemm'].map((type) => types.filter((each) => each === type).length)).toEqual([1, 2]);
  });

  it.each([1, 256])(
    'is widened as it is loaded where whole numbers are not computed with, rotation %s',
    async (rotation) => {
      const x = float32(normal(tokens * width, 2), [1, tokens, width]);
      const wanted = product(x.data as Float32Array, weight, out);
      const file = int8File({ plain: weight }, out, rotation);
      const session = await open(file, width, (m, v) => linear(m, v, 'plain'), 2, false);
      writeFileSync(file, new Uint8Array(statSync(file).size), { flag: 'r+' });
      const error = relativeError(await runData(session, { x }), wanted);
      await session.release();
      expect(error).toBeLessThan(1.3e-2);
    },
  );
});

describe.each([1, 2, 4])('A linear layer in int8 with adapters of rows, on %d threads', (threads) => {
  it.each([
    ['many tokens', 33, 320],
    ['one token', 1, 768],
    ['one token of one block', 1, 256],
  ])('gives each row the bits that it has alone: %s', async (_, tokens, width) => {
    const [rows, rank, out] = [3, 8, width];
    const weight = normal(out * width, 1);
    const file = int8File({ layer: weight, plain: weight }, out, rotationOf(width));
    const session = await open(file, width, (m, v) => linear(m, v, 'layer', tokens === 1), threads);
    const all = [normal(rows * tokens * width, 2), normal(rows * rank * width, 3), normal(rows * out * rank, 4)];
    all[0].fill(0, 0, width);
    const run = async (from: number, to: number, isAdapted: boolean): Promise<Buffer> => {
      const cut = (data: Float32Array, ...own: number[]): Tensor => {
        const length = data.length / rows;
        return float32(data.slice(from * length, to * length), [to - from, ...own]);
      };
      const [x, a, b] = [cut(all[0], tokens, width), cut(all[1], rank, width), cut(all[2], out, rank)];
      const none = [float32(new Float32Array(), [1, 0, width]), float32(new Float32Array(), [1, out, 0])];
      const [lora_A, lora_B] = isAdapted ? [a, b] : none;
      const y = await runData(session, { x, 'layer.lora_A': lora_A, 'layer.lora_B': lora_B });
      return Buffer.from(y.buffer, y.byteOffset, y.byteLength);
    };
    const alone = async (isAdapted: boolean) =>
      Buffer.concat([await run(0, 1, isAdapted), await run(1, 2, isAdapted), await run(2, 3, isAdapted)]);
    const [adapted, unadapted] = [await run(0, rows, true), await run(0, rows, false)];
    expect(adapted.equals(await alone(true))).toBe(true);
    expect(unadapted.equals(await alone(false))).toBe(true);
    expect(adapted.equals(unadapted)).toBe(false);
    await session.release();
    const bare = await open(file, width, (m, v) => linear(m, v, 'plain'), threads);
    const plain = await runData(bare, { x: float32(all[0], [rows, tokens, width]) });
    await bare.release();
    expect(Buffer.from(plain.buffer).equals(unadapted)).toBe(true);
  });
});

/** A copy of a model with its U-Net and text encoder in int8. */
async function inInt8(model: string): Promise<string> {
  const copy = mkdtempSync(join(folder, 'model-'));
  await cp(model, copy, { recursive: true });
  for (const part of ['unet', 'text_encoder']) {
    const conversion = await planConversion(await readPart(join(model, part)), 'int8', stableDiffusion1.keptInFloat);
    await conversion.write(join(copy, part, 'diffusion_pytorch_model.safetensors'));
  }
  return copy;
}

describe('A model in int8', () => {
  it('draws what it draws in float32', async () => {
    const shapes = join(__dirname, '../../models/shapes');
    const prompts = ['two green stars', 'three outlined pink moons', 'a red circle on a blue background'];
    const pictures: RgbImage[] = [];
    for (const path of [shapes, await inInt8(shapes)]) {
      const pipeline = await Pipeline.load(path, cpu);
      for (const [i, prompt] of prompts.entries()) {
        const request = { prompt, width: 512, height: 512, numInferenceSteps: 25, guidanceScale: 3, seeds: [i + 1] };
        pictures.push(...(await pipeline.generate(request)).images);
      }
      await pipeline.release();
    }
    for (const i of prompts.keys()) expect(psnr(pictures[i + prompts.length], pictures[i])).toBeGreaterThan(35);
  });

  it('takes adapters as one in float32 does, and is without them what it was before', async () => {
    await unpackFamily('sd15', join(folder, 'sd15'));
    const model = join(folder, 'sd15/model');
    const request = { prompt: 'a cat', width: 64, height: 64, numInferenceSteps: 4, guidanceScale: 5, seeds: [1] };
    const adapters = ['lora-attention-peft', 'lora-linear-kohya', 'lokr', 'diff'];
    const drawn: Float32Array[][] = [];
    for (const path of [model, await inInt8(model)]) {
      const { tensors } = await readModelFolder(path);
      const plain = await Pipeline.load(path, cpu);
      const latents = [(await plain.generate(request)).latents[0]];
      for (const name of adapters) {
        const fitted = fitAdapter(await readAdapter(join(folder, `sd15/adapters/${name}.safetensors`)), tensors);
        const changedWeights = join(path, `${name}.merged`);
        if (fitted.merged.size > 0) await writeMerged([{ adapter: fitted, scale: 1 }], changedWeights);
        const pipeline = fitted.merged.size > 0 ? await Pipeline.load(path, { ...cpu, changedWeights }) : plain;
        const use = { adapter: await loadAdapter(fitted), scale: 1, token: undefined };
        latents.push((await pipeline.generate({ ...request, adapters: [use] })).latents[0]);
        if (pipeline !== plain) await pipeline.release();
      }
      latents.push((await plain.generate(request)).latents[0]);
      await plain.release();
      drawn.push(latents);
    }
    const [float, int8] = drawn;
    for (const [i, latents] of float.entries()) {
      expect(relativeError(int8[i], latents)).toBeLessThan(3e-2);
      if (i % (float.length - 1) !== 0) expect(relativeError(latents, float[0])).toBeGreaterThan(5e-2);
    }
    expect(Buffer.from(int8.at(-1)!.buffer).equals(Buffer.from(int8[0].buffer))).toBe(true);
  });
});
