import { cp, mkdir, open, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type LoadOptions, OnnxModel, StableDiffusionPipeline, type TextToImageRequest } from '@app/diffusion';
import { cpu } from './cpu';

/** Models of a few kilobytes: exports of diffusers and of optimum, and models distilled for few steps. */
export type TinyModel = 'sd15-diffusers' | 'sd21-optimum' | 'lcm' | 'lcm-int8';

/** The size of the pictures of `drawFrom`. */
export const sizes = { width: 64, height: 64 };

const tiny = (name: string) => join(__dirname, '../golden/models/tiny', name);

/** Copies a model to a folder that a test may change. */
export async function placeModel(base: TinyModel, folder: string): Promise<void> {
  const isDistilled = base.startsWith('lcm');
  await cp(tiny(isDistilled ? 'sd15-diffusers' : base), folder, { recursive: true });
  if (!isDistilled) return;
  await rm(join(folder, 'unet'), { recursive: true });
  await cp(tiny('lcm'), folder, { recursive: true });
  if (base !== 'lcm') await cp(tiny(base), folder, { recursive: true });
}

/**
 * Puts the U-Net's weights into an external file, behind so many bytes of nothing: it is as large as that, but takes no
 * disk.
 */
export async function moveWeights(folder: string, offset: number): Promise<void> {
  const file = join(folder, 'unet/model.onnx');
  const model = OnnxModel.open(file);
  const weights = await open(join(folder, 'unet/model.onnx_data'), 'w');
  const places = new Map<string, { location: string; offset: number; length: number }>();
  for (const { name, dataType, data } of model.initializers.values()) {
    if (dataType !== 1 || data?.end === undefined || data.end - data.begin < 1024) continue;
    const length = data.end - data.begin;
    await weights.write((await readFile(file)).subarray(data.begin, data.end), 0, length, offset);
    places.set(name, { location: 'model.onnx_data', offset, length });
    offset += Math.ceil(length / 4096) * 4096;
  }
  await weights.close();
  await model.write(join(folder, 'unet/large.onnx'), places, new Set());
  await rename(join(folder, 'unet/large.onnx'), file);
}

/** Every file becomes a link into a folder of blobs beside the model, as in the cache of the hub's clients. */
export async function likeHub(folder: string): Promise<void> {
  const blobs = join(dirname(folder), 'blobs');
  await mkdir(blobs);
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const blob = join(blobs, `${(await readdir(blobs)).length}`);
    await rename(file, blob);
    await symlink(blob, file);
  }
}

/** Draws a small picture with the model in a folder. */
export async function drawFrom(
  folder: string,
  request: Partial<TextToImageRequest> = {},
  options: Partial<LoadOptions> = {},
) {
  const pipeline = await StableDiffusionPipeline.load(folder, { ...cpu, ...options });
  try {
    const { facts } = pipeline;
    const whole = { prompt: 'a', ...sizes, numInferenceSteps: 3, guidanceScale: 5, seeds: [1], ...request };
    return { facts, drawn: await pipeline.generate(whole) };
  } finally {
    await pipeline.release();
  }
}
