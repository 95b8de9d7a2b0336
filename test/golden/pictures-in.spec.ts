import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ControlNet,
  type ControlUse,
  readControlFolder,
  readModelFolder,
  RequestError,
  type RgbImage,
  Pipeline,
  type TextToImageRequest,
  type Trajectory,
} from '@app/diffusion';
import { type NamedTensors, readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { unpackFamily, unpackFolder } from '../support/families';
import { largestDifference } from '../support/golden';
import { bytesOf, expectRecorded, type PictureCase, pictureRequestOf } from '../support/picture-goldens';

/** Made by scripts/goldens/pictures_in.py; arrays are named by what a case calls for. */
interface Case extends PictureCase {
  image_guidance_scale?: number;
  control?: { net: string; image: string; scale: number; start: number; end: number }[];
}

const cases = JSON.parse(readFileSync('test/golden/pictures-in/cases.json', 'utf8')) as Case[];
const folder = mkdtempSync(join(tmpdir(), 'pictures-in-'));
const pipelines = new Map<string, Pipeline>();
const nets = new Map<string, ControlNet>();
let arrays: NamedTensors;

beforeAll(async () => {
  await unpackFolder('test/golden/pictures-in', folder);
  arrays = await readSafetensors(join(folder, 'expected.safetensors'));
});
afterAll(async () => {
  for (const loaded of [...pipelines.values(), ...nets.values()]) await loaded.release();
  rmSync(folder, { recursive: true });
});

async function rootOf(family: string): Promise<string> {
  const root = join(folder, family);
  if (!pipelines.has(family)) await unpackFamily(family, root);
  return root;
}

async function pipelineOf(family: string): Promise<Pipeline> {
  const root = await rootOf(family);
  const loaded = pipelines.get(family) ?? (await Pipeline.load(join(root, 'model'), cpu));
  pipelines.set(family, loaded);
  return loaded;
}

/** A ControlNet: the folder of diffusers that a family has, or one file in the original names. */
async function netOf(name: string): Promise<ControlNet> {
  const [family, which] = name.split('/');
  await pipelineOf(family);
  let path = join(folder, family, 'control');
  if (which !== 'control') {
    path = join(folder, which);
    mkdirSync(path, { recursive: true });
    await copyFile(join(folder, `${which}.safetensors`), join(path, 'any.safetensors'));
  }
  const model = await readModelFolder(join(folder, family, 'model'));
  const net = nets.get(name) ?? (await ControlNet.open(await readControlFolder(path), model, cpu));
  nets.set(name, net);
  return net;
}

async function requestWithPictures(one: Case): Promise<TextToImageRequest> {
  const { width, height, image_guidance_scale: imageGuidanceScale } = one;
  const control: ControlUse[] = [];
  for (const { net, image: map, ...rest } of one.control ?? [])
    control.push({ controlNet: await netOf(net), image: { width, height, data: await bytesOf(arrays, map) }, ...rest });
  return {
    ...(await pictureRequestOf(one, arrays)),
    ...(imageGuidanceScale !== undefined && { imageGuidanceScale }),
    ...(control.length > 0 && { control }),
  };
}

const named = (name: string): Case => cases.find((one) => one.name === name)!;

it.each(cases.map((one) => [one.name, one] as const))('diffusers draws the same: %s', async (name, one) => {
  const pipeline = await pipelineOf(one.family);
  const request = await requestWithPictures(one);
  const { latents, images } = await pipeline.generate(request);
  const expected = await readValues(arrays.get(`${name}.latents`)!);
  // Random models blow latents up with some schedulers; then rounding is larger too.
  const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 1);
  expect(largestDifference(latents[0], expected) / largest).toBeLessThan(1e-4);
  await expectRecorded(name, request, { images }, arrays);
});

it.each(['mask-ddim', 'inpainting-0.75'])('What a mask keeps is the original to the byte: %s', async (name) => {
  const one = named(name);
  const request = await requestWithPictures(one);
  const { images } = await (await pipelineOf(one.family)).generate(request);
  const at = (i: number): number => request.mask!.values[Math.floor(i / 3)];
  const kept = (_: number, i: number): boolean => at(i) === 0;
  expect(images[0].data.filter(kept)).toStrictEqual(request.image!.data.filter(kept));
  expect(images[0].data.filter((_, i) => at(i) === 255)).not.toStrictEqual(
    request.image!.data.filter((_, i) => at(i) === 255),
  );
});

it('Pictures of all kinds are the same bits alone and beside others', async () => {
  const pipeline = await pipelineOf('sd15');
  const names = ['control', 'control-two', 'control-mask', 'mask-ddim'];
  const prepared = async (name: string): Promise<Trajectory> =>
    (await pipeline.prepare({ ...(await requestWithPictures(named(name))), numInferenceSteps: 4 }))[0];
  const text: Trajectory = (
    await pipeline.prepare({
      ...(await requestWithPictures(named('control'))),
      control: [],
      numInferenceSteps: 4,
      seeds: [3],
    })
  )[0];
  const run = async (all: Trajectory[]): Promise<Float32Array[]> => {
    for (let left = all; (left = left.filter(({ done }) => !done)).length > 0;) await pipeline.step(left);
    return all.map(({ latents }) => latents);
  };
  const alone: Float32Array[] = [];
  for (const name of names) alone.push(...(await run([await prepared(name)])));
  const [first] = await run([text]);
  const again = (
    await pipeline.prepare({
      ...(await requestWithPictures(named('control'))),
      control: [],
      numInferenceSteps: 4,
      seeds: [3],
    })
  )[0];
  const together = await run([...(await Promise.all(names.map(prepared))), again]);
  expect(together).toStrictEqual([...alone, first]);
});

it('The same seed and picture give the same bytes', async () => {
  const one = named('image-ddim-0.75');
  const pipeline = await pipelineOf(one.family);
  const request = await requestWithPictures(one);
  expect(await pipeline.generate(request)).toStrictEqual(await pipeline.generate(request));
});

const blank = (width: number, height: number): RgbImage => ({
  width,
  height,
  data: new Uint8Array(width * height * 3),
});

it.each<[string, Partial<TextToImageRequest>, string]>([
  ['a picture of another size', { image: blank(64, 56) }, 'The picture is of 64 x 56 pixels, and not of 64 x 64.'],
  ['a mask alone', { mask: { width: 64, height: 64, values: new Uint8Array(4096) } }, 'no picture that it is for'],
  [
    'a mask that misses all latents',
    {
      image: blank(64, 64),
      mask: { width: 64, height: 64, values: Uint8Array.from({ length: 4096 }, (_, i) => (i % 64 === 30 ? 255 : 0)) },
    },
    'The mask marks nothing that this model repaints: it sees one pixel of each 8 x 8',
  ],
  ['a strength of 0', { image: blank(64, 64), strength: 0 }, 'The strength is 0; it is above 0 and at most 1.'],
  ['a strength that draws nothing', { image: blank(64, 64), strength: 0.1 }, 'it takes at least 0.25'],
])('A request is refused for %s', async (_, change, sentence) => {
  const pipeline = await pipelineOf('sd15');
  const request = { prompt: 'a', width: 64, height: 64, numInferenceSteps: 4, guidanceScale: 1, seeds: [1], ...change };
  const drawing = pipeline.prepare(request);
  await expect(drawing).rejects.toThrow(RequestError);
  await expect(drawing).rejects.toThrow(sentence);
});

it('A ControlNet of another family is refused in a sentence', async () => {
  await pipelineOf('sdxl');
  const net = await readControlFolder(join(folder, 'sdxl', 'control'));
  expect(net.family.name).toBe('sdxl');
  await rootOf('sd15');
  const model = await readModelFolder(join(folder, 'sd15', 'model'));
  await expect(ControlNet.open(net, model, cpu)).rejects.toThrow(
    'This ControlNet is for Stable Diffusion XL, and the model is of Stable Diffusion 1.x.',
  );
});

it.each(['sd15', 'sdxl', 'inpainting'])(
  'The encoder of %s gives the distribution that diffusers does',
  async (family) => {
    const root = await rootOf(family);
    const expected = await readSafetensors(join(root, 'expected.safetensors'));
    const values = (name: string) => readValues(expected.get(`vae.${name}`)!);
    const [rows, , height, width] = expected.get('vae.picture')!.shape;
    const { autoencoder } = await readModelFolder(join(root, 'model'));
    const encoder = await autoencoder.openEncoder(cpu);
    try {
      const first = (all: Float32Array): Float32Array => all.subarray(0, all.length / rows);
      const { mean, deviation } = await encoder.encode({ planes: first(await values('picture')), width, height });
      const factor = family === 'sdxl' ? 0.13025 : 0.18215;
      const rightMean = first(await values('mean')).map((value) => value * factor);
      expect(largestDifference(mean, rightMean)).toBeLessThan(1e-5);
      const right = first(await values('logvar')).map((logarithm) => Math.exp(logarithm / 2) * factor);
      expect(largestDifference(deviation!, right)).toBeLessThan(1e-5);
    } finally {
      await encoder.release();
    }
  },
);
