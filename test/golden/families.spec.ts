import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LoadOptions, RequestError, type RgbImage, Pipeline, type Trajectory } from '@app/diffusion';
import { fromPlanes } from '../../libs/diffusion/src/tensor/planes';
import {
  countOf,
  type NamedTensor,
  type NamedTensors,
  readValues,
} from '../../libs/diffusion/src/weights/named-tensor';
import { partsOfCheckpoint } from '../../libs/diffusion/src/weights/original-names';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { lastOpened, requestOf, unpackFamily } from '../support/families';
import { largestDifference } from '../support/golden';
import { hasCuda } from '../support/has-cuda';
import { psnr } from '../support/psnr';
import { encodeSafetensors, type TensorToWrite } from '../support/safetensors';

interface Case {
  name: string;
  prompt: string;
  negative_prompt: string | null;
  seed?: number;
  seeds?: number[];
  steps: number;
  cfg: number;
  height: number;
  width: number;
  scheduler: string;
  scheduler_config: object | null;
  adapters: { file: string; strength?: number; token?: string }[];
  clip_skip?: number;
}

const folder = mkdtempSync(join(tmpdir(), 'families-'));
afterAll(() => rmSync(folder, { recursive: true }));

const casesOf = (family: string): Case[] =>
  (JSON.parse(readFileSync(join('test/golden/families', family, 'family.json'), 'utf8')) as { cases: Case[] }).cases;

/** The folder of a family, `model` in it as a folder or as one file. */
async function rootOf(family: string): Promise<string> {
  const root = mkdtempSync(join(folder, `${family}-`));
  await unpackFamily(family, root);
  if (!family.endsWith('-file')) return root;
  mkdirSync(join(root, 'model'));
  renameSync(join(root, 'model.safetensors'), join(root, 'model', 'any.safetensors'));
  return root;
}

async function withModel<T>(
  model: string,
  use: (pipeline: Pipeline) => Promise<T>,
  load: LoadOptions = cpu,
): Promise<T> {
  const pipeline = await Pipeline.load(model, load);
  try {
    return await use(pipeline);
  } finally {
    await pipeline.release();
  }
}

const kept = lastOpened<{ root: string; pipeline: Pipeline }>();

/** A model with a case's own files. */
function opened(family: string, one: Case) {
  const { clip_skip: skipped, scheduler_config: scheduler, scheduler: _class_name } = one;
  const files = JSON.stringify([family, skipped, scheduler, scheduler && _class_name]);
  return kept(files, async () => {
    const root = await rootOf(family);
    const write = (name: string, json: object) => writeFileSync(join(root, 'model', name), JSON.stringify(json));
    if (skipped !== undefined) write('darkroom.json', { clip_skip: skipped + 1 });
    if (scheduler) write('scheduler/scheduler_config.json', { ...scheduler, _class_name });
    return { root, pipeline: await Pipeline.load(join(root, 'model'), cpu) };
  });
}

const families = ['sd15', 'sd15-file', 'sd21', 'sd21-base', 'sd21-file', 'sdxl', 'sdxl-file', 'sdxl-turbo', 'lcm'];
const drawn = families.flatMap((family) =>
  casesOf(family)
    .filter(({ name, adapters }) => adapters.length === 0 && name !== 'control' && name !== 'sizes')
    .map((one) => [family, one.name, one] as const),
);

it.each(drawn)('A model of %s draws what diffusers does: %s', async (family, name, one) => {
  const { root, pipeline } = await opened(family, one);
  const { latents, images } = await pipeline.generate(requestOf(one));
  const expected = await readSafetensors(join(root, 'expected.safetensors'));
  const right = await readValues(expected.get(`${name}.latents`)!);
  const all = Float32Array.from(latents.flatMap((each) => [...each]));
  expect(largestDifference(all, right)).toBeLessThan(1e-4);
  if (expected.has(`${name}.decoded`)) expect(await decibelsOf(images[0], expected, one)).toBeGreaterThan(60);
});

async function decibelsOf(image: RgbImage, expected: NamedTensors, { name, width, height }: Case): Promise<number> {
  const decoded = await readValues(expected.get(`${name}.decoded`)!);
  return psnr(
    image,
    fromPlanes(decoded, width, height, (value) => (value / 2 + 0.5) * 255),
  );
}

/** The text encoders and the U-Net compute in float16 there. Measured on an H200: 52 dB and more. */
(hasCuda() ? it : it.skip).each(families)('A model of %s draws on CUDA what diffusers does', async (family) => {
  const one = casesOf(family).find(({ name }) => name === 'plain')!;
  const root = await rootOf(family);
  const draw = (pipeline: Pipeline) => pipeline.generate(requestOf(one));
  const { images } = await withModel(join(root, 'model'), draw, { device: 'cuda:0' });
  const expected = await readSafetensors(join(root, 'expected.safetensors'));
  expect(await decibelsOf(images[0], expected, one)).toBeGreaterThan(45);
});

it.each([
  ['inpainting', 'This model is for inpainting'],
  ['instruct-pix2pix', 'This model changes pictures'],
])('A model of %s is loaded and draws nothing from text alone', async (family, sentence) => {
  const model = join(await rootOf(family), 'model');
  const drawing = withModel(model, (pipeline) => pipeline.prepare(requestOf(casesOf(family)[0])));
  await expect(drawing).rejects.toThrow(RequestError);
  await expect(drawing).rejects.toThrow(sentence);
});

it.each(['sd15-file', 'sd21-file', 'sdxl-file'])(
  'A folder draws the same bits as the one file of %s',
  async (family) => {
    const root = await rootOf(family);
    const asFolder = join(root, 'folder');
    const parts = partsOfCheckpoint(await readSafetensors(join(root, 'model', 'any.safetensors')));
    for (const [part, tensors] of parts) {
      const { num_hidden_layers: count = Infinity } = JSON.parse(
        readFileSync(join(asFolder, part, 'config.json'), 'utf8'),
      ) as { num_hidden_layers?: number };
      // OpenCLIP's file of 2.x has a layer that diffusers leaves out.
      const own = [...tensors].filter(([name]) => Number(/\.layers\.(\d+)\./.exec(name)?.[1] ?? 0) < count);
      const written: Record<string, TensorToWrite> = {};
      for (const [name, one] of own) written[name] = await asStored(one);
      const file = part.startsWith('text') ? 'model.safetensors' : 'diffusion_pytorch_model.safetensors';
      writeFileSync(join(asFolder, part, file), encodeSafetensors(written));
    }
    const [one] = casesOf(family);
    const fromFile = await withModel(join(root, 'model'), (pipeline) => pipeline.generate(requestOf(one)));
    const fromFolder = await withModel(asFolder, (pipeline) => pipeline.generate(requestOf(one)));
    expect(fromFolder).toStrictEqual(fromFile);
  },
);

/** A tensor as it is written: a matrix that is stored transposed is turned. */
async function asStored(tensor: NamedTensor): Promise<TensorToWrite> {
  const { shape, isTransposed, type } = tensor;
  const values = await readValues(tensor);
  const [rows, columns] = shape;
  const turned = isTransposed ? values.map((_, i) => values[(i % columns) * rows + Math.floor(i / columns)]) : values;
  expect(values).toHaveLength(countOf(shape));
  return { shape: [...shape], values: turned, dtype: type as 'F16' | 'F32' };
}

describe.each(['sd15', 'sdxl', 'lcm'])('Pictures of several requests for %s', (family) => {
  let pipeline: Pipeline;
  beforeAll(async () => {
    pipeline = await Pipeline.load(join(await rootOf(family), 'model'), cpu);
  });
  afterAll(() => pipeline.release());

  it('are the same bits alone and beside up to seven others', async () => {
    const request = { ...requestOf(casesOf(family)[0]), numInferenceSteps: 2 };
    const prepare = async (i: number): Promise<Trajectory> =>
      (await pipeline.prepare({ ...request, prompt: `${request.prompt} ${i}`, guidanceScale: 3 + i, seeds: [i] }))[0];
    const run = async (trajectories: Trajectory[]) => {
      while (!trajectories[0].done) await pipeline.step(trajectories);
      return trajectories.map(({ latents }) => latents);
    };
    const alone: Float32Array[] = [];
    for (let i = 0; i < 8; i++) alone.push(...(await run([await prepare(i)])));
    for (let count = 2; count <= 8; count++)
      expect(await run(await Promise.all(alone.slice(0, count).map((_, i) => prepare(i))))).toStrictEqual(
        alone.slice(0, count),
      );
  });

  it('may have texts of several chunks', async () => {
    const request = requestOf(casesOf(family)[0]);
    const long = { ...request, prompt: `${'red circle '.repeat(40)}above a blue square` };
    const [short, whole] = [await pipeline.generate(request), await pipeline.generate(long)];
    expect([short.promptChunks, whole.promptChunks]).toEqual([1, 2]);
    const other = await pipeline.generate({ ...long, prompt: `${'red circle '.repeat(40)}below a green star` });
    expect(other.latents).not.toStrictEqual(whole.latents);
    expect(whole.latents.every((values) => values.every(Number.isFinite))).toBe(true);
  });
});
