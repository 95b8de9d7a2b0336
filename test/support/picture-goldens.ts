import type { RgbImage, SchedulerName, TextToImageRequest } from '@app/diffusion';
import { fromPlanes } from '../../libs/diffusion/src/tensor/planes';
import { type NamedTensors, readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { type RecordedCase, requestOf } from './families';
import { psnr } from './psnr';

/** A recorded case that may be drawn from a picture; arrays are named by what it calls for. */
export interface PictureCase extends RecordedCase {
  name: string;
  family: string;
  seed: number;
  scheduler: SchedulerName | null;
  strength?: number;
  image?: string;
  mask?: string;
  /** Each is named `reference.<height>x<width>`. */
  references?: readonly string[];
}

export const bytesOf = async (arrays: NamedTensors, name: string): Promise<Uint8Array> =>
  Uint8Array.from(await readValues(arrays.get(name)!));

/** The request of a recorded case, with its pictures. */
export async function pictureRequestOf(one: PictureCase, arrays: NamedTensors): Promise<TextToImageRequest> {
  const { width, height, image, mask, strength, scheduler, references } = one;
  const looked = references && (await Promise.all(references.map((name) => referenceOf(name, arrays))));
  return {
    ...requestOf(one),
    ...(scheduler && { scheduler }),
    ...(image !== undefined && { image: { width, height, data: await bytesOf(arrays, image) } }),
    ...(strength !== undefined && { strength }),
    ...(mask !== undefined && { mask: { width, height, values: await bytesOf(arrays, mask) } }),
    ...(looked && { references: looked }),
  };
}

async function referenceOf(name: string, arrays: NamedTensors): Promise<RgbImage> {
  const [height, width] = name.split('.')[1].split('x').map(Number);
  return { width, height, data: await bytesOf(arrays, name) };
}

/** Expects the picture that was recorded for a case, if one was; what its mask keeps is the original. */
export async function expectRecorded(
  name: string,
  { width, height, mask, image }: TextToImageRequest,
  { images }: { images: readonly RgbImage[] },
  arrays: NamedTensors,
): Promise<void> {
  const decoded = arrays.get(`${name}.decoded`);
  if (!decoded) return;
  const drawn = fromPlanes(await readValues(decoded), width, height, (value) => (value / 2 + 0.5) * 255);
  const data = drawn.data.map((byte, i) => (mask?.values[Math.floor(i / 3)] === 0 ? image!.data[i] : byte));
  expect(psnr(images[0], { ...drawn, data })).toBeGreaterThan(60);
}
