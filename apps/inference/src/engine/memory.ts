import {
  type ControlFolder,
  countOf,
  type Device,
  hasCallsInPowersOfTwo,
  type ModelFolder,
  mostWidenedBytes,
  type NamedTensor,
  type NamedTensors,
  powerOfTwoUpTo,
  providerOf,
  type Trajectory,
} from '@app/diffusion';

/** Edges of a picture or of a tile, in pixels. */
interface Size {
  width: number;
  height: number;
}

/** Bytes of the largest call of each part of a model. The runtime keeps this memory until the model is released. */
export interface CallBytes {
  conditioner?: number;
  vaeEncoder?: number;
  denoiser?: number;
  vaeDecoder?: number;
  upscaler?: number;
  safety?: number;
}

/** Bytes that the sessions of a model take besides its weights and calls. */
export const sessionBytes = 50 * 2 ** 20;
/** Feature maps of the size of the upscaled tile, and their channels: ESRGAN's, as a graph does not tell them. */
const upscaled = { maps: 6, channels: 64 };
const float32 = 4;

/** Bytes of the weights in memory of what draws of a model. */
export function weightBytesOf(
  { denoiser, autoencoder }: Pick<ModelFolder, 'denoiser' | 'autoencoder'>,
  device: Device,
): number {
  return sessionBytes + partBytes(denoiser.tensors, device) + partBytes(autoencoder.weightsOf('decoder'), device, true);
}

/** Bytes of the weights in memory of what encodes texts. */
export function textWeightBytesOf({ conditioner }: Pick<ModelFolder, 'conditioner'>, device: Device): number {
  return conditioner.encoders.reduce((sum, { tensors }) => sum + partBytes(tensors, device), sessionBytes);
}

/**
 * A CUDA device has half precision (except the VAE), all others float32; both widen int8. On the processor int8 stays
 * so, and the weights of a large part stay in half precision.
 */
function partBytes(tensors: NamedTensors, device: Device, isExact = false): number {
  const all = [...tensors.values()];
  const sum = (types: (type: NamedTensor['type']) => boolean): number =>
    all.reduce((total, { type, shape }) => (types(type) ? total + float32 * countOf(shape) : total), 0);
  const whole = sum(() => true);
  if (device !== 'cpu') return providerOf(device) === 'cuda' && !isExact ? whole / 2 : whole;
  const halves = sum((type) => type !== 'I8' && type !== 'F32');
  return whole - (sum((type) => type === 'I8') * 3) / 4 - (halves > mostWidenedBytes ? halves / 2 : 0);
}

/** An upper estimate of the bytes that a row of a call of the denoiser takes, without its adapters. */
export function bytesPerRow(
  { denoiser, autoencoder: { scaleFactor } }: ModelFolder,
  { width, height, image, references = [] }: Size & { image?: unknown; references?: readonly Size[] },
  device: Device,
) {
  const latents = { height: height / scaleFactor, width: width / scaleFactor };
  const looked = [...(image && denoiser.takesReferences ? [{ width, height }] : []), ...references];
  const referencePositions = looked.reduce((sum, size) => sum + (size.width * size.height) / scaleFactor ** 2, 0);
  return denoiser.rowBytes(latents, providerOf(device), referencePositions);
}

/** Rows of a call that fit into this many bytes, at least one; on a GPU a power of two. */
export function fittingRows(bytes: number, rowBytes: number, device: Device): number {
  const rows = Math.max(1, Math.floor(bytes / rowBytes));
  return hasCallsInPowersOfTwo(device) ? powerOfTwoUpTo(rows) : rows;
}

/** Bytes of the factors of a picture's adapters, which a call has for each row. */
export function adapterBytesPerRow({ adapters }: Pick<Trajectory, 'adapters'>): number {
  return [...adapters.values()].reduce((sum, { a, b }) => sum + a.byteLength + b.byteLength, 0);
}

/**
 * An upper estimate of the bytes that encoding pictures takes, one after the other, the weights of the encoder
 * included.
 */
export function encodePictureBytes({ autoencoder }: ModelFolder, sizes: readonly Size[]): number {
  const callBytes = Math.max(...sizes.map((size) => autoencoder.callBytes(size)));
  return sessionBytes + float32 * valuesIn([...autoencoder.weightsOf('encoder')]) + callBytes;
}

/** Bytes of a ControlNet's row, as a part of those of the U-Net's: it has only the down blocks. */
export const controlRatio = 1 / 2;

/** Bytes of a ControlNet's weights in memory. */
export function controlWeightBytesOf({ tensors }: Pick<ControlFolder, 'tensors'>, device: Device): number {
  return sessionBytes + partBytes(tensors, device);
}

/** Bytes of a safety checker's weights in memory, in float32 on every device. */
export const safetyWeightBytesOf = ({ tensors }: Pick<ControlFolder, 'tensors'>): number =>
  sessionBytes + float32 * valuesIn([...tensors]);

/** An upper estimate of the bytes that its call takes: of CLIP's largest vision model, 257 tokens. */
export const safetyCallBytes = 64 * 2 ** 20;

const valuesIn = (tensors: readonly [name: string, tensor: { shape: readonly number[] }][]): number =>
  tensors.reduce((sum, [, { shape }]) => sum + countOf(shape), 0);

/** An upper estimate of the bytes that upscaling a tile takes. @param scale of its edges */
export function tileBytes({ width, height }: Size, scale: number): number {
  return upscaled.maps * upscaled.channels * width * height * scale ** 2 * float32;
}
