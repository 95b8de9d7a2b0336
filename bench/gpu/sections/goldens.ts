import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { inOneLine, Pipeline, type RgbImage } from '@app/diffusion';
import { fromPlanes } from '../../../libs/diffusion/src/tensor/planes';
import { type NamedTensors, readValues } from '../../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../../libs/diffusion/src/weights/safetensors-file';
import { type RecordedCase, requestOf, unpackFolder, unpackTransformerModel } from '../../../test/support/families';
import { type PictureCase, pictureRequestOf } from '../../../test/support/picture-goldens';
import { psnr } from '../../../test/support/psnr';
import { type GpuBench, type GpuSection, secondsLeft } from '../gpu-section';

/** U-Nets compute in float16 on CUDA: 52 dB and more were measured on an H200. */
const unets = ['sd15', 'sd15-file', 'sd21', 'sd21-base', 'sd21-file', 'sdxl', 'sdxl-file', 'sdxl-turbo', 'lcm'];
/**
 * Transformers compute in bfloat16 there, whose mantissa has three bits less: diffusers' own latents of these models are
 * off by 0.5 to 2 % in it.
 */
const transformers = {
  transformers: ['flux2-klein', 'flux2-klein-base', 'z-image', 'z-image-turbo'],
  'ernie-image': ['ernie-image'],
  references: ['flux2-klein'],
};
const leastDecibels = { float16: 45, bfloat16: 30 };

export const goldens: GpuSection = {
  name: 'goldens',
  title: 'Goldens of every family',
  about:
    'Pictures of tiny models, compared with what diffusers draws in float32 on a processor: decibels in place of ratios. On CUDA U-Nets are drawn in float16 and transformers in bfloat16.',
  seconds: 60,
  needsNoModels: true,
  async measure(bench) {
    const folder = mkdtempSync(join(bench.weights, 'goldens-'));
    try {
      for (const family of bench.size === 'tiny' ? ['sd15', 'sdxl-file'] : unets)
        await compared(bench, family, 'float16', () => drawnByUnet(bench, family, folder));
      for (const [recording, families] of Object.entries(transformers)) {
        const to = join(folder, recording);
        await unpackFolder(join('test/golden', recording), to);
        const arrays = await readSafetensors(join(to, 'expected.safetensors'));
        for (const family of families)
          await compared(bench, `${family}, ${recording}`, 'bfloat16', () =>
            drawnByTransformer(bench, family, to, arrays),
          );
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
};

/** One that fails says why, and the others are drawn. */
async function compared(
  bench: GpuBench,
  family: string,
  half: 'float16' | 'bfloat16',
  draw: () => Promise<number>,
): Promise<void> {
  const name = `${family} (${bench.device === 'cpu' ? 'float32' : half})`;
  if (secondsLeft(bench) < 5) return bench.tell(`${name}: left out, for time.`);
  try {
    bench.tell({ name, ratios: [await draw()], goal: { atLeast: leastDecibels[half] }, detail: 'dB' });
  } catch (error) {
    bench.tell(`${name}: **failed**: ${inOneLine((error as Error).message)}`);
  }
}

async function drawnByUnet({ device }: GpuBench, family: string, folder: string): Promise<number> {
  const root = join(folder, family);
  await unpackFolder(join('test/golden/families', family), root);
  if (family.endsWith('-file')) {
    mkdirSync(join(root, 'model'));
    renameSync(join(root, 'model.safetensors'), join(root, 'model', 'any.safetensors'));
  }
  const { cases } = JSON.parse(readFileSync(join(root, 'family.json'), 'utf8')) as { cases: PictureCase[] };
  const one = cases.find(({ name }) => name === 'plain')!;
  const pipeline = await Pipeline.load(join(root, 'model'), { device });
  const { images } = await pipeline.generate(requestOf(one));
  await pipeline.release();
  return decibelsOf(images[0], await readSafetensors(join(root, 'expected.safetensors')), one.name, one);
}

async function drawnByTransformer(
  { device }: GpuBench,
  family: string,
  folder: string,
  arrays: NamedTensors,
): Promise<number> {
  const all = JSON.parse(readFileSync(join(folder, 'cases.json'), 'utf8')) as PictureCase[];
  const one = all.find((each) => each.family === family && arrays.has(`${each.name}.decoded`))!;
  await unpackTransformerModel(family, join(folder, family));
  const pipeline = await Pipeline.load(join(folder, family), { device });
  const { images } = await pipeline.generate(await pictureRequestOf(one, arrays));
  await pipeline.release();
  return decibelsOf(images[0], arrays, one.name, one);
}

async function decibelsOf(
  image: RgbImage,
  arrays: NamedTensors,
  name: string,
  { width, height }: RecordedCase,
): Promise<number> {
  const decoded = await readValues(arrays.get(`${name}.decoded`)!);
  return psnr(
    image,
    fromPlanes(decoded, width, height, (value) => (value / 2 + 0.5) * 255),
  );
}
