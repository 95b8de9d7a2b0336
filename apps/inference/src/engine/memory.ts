import {
  type ControlFolder,
  countOf,
  type Device,
  hasCallsInPowersOfTwo,
  type ModelFolder,
  type ModelKind,
  type ModelWidths,
  mostWidenedBytes,
  powerOfTwoUpTo,
  type Provider,
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
  textEncoder?: number;
  vaeEncoder?: number;
  unet?: number;
  vaeDecoder?: number;
  upscaler?: number;
}

/*
 * Factors of the estimates. A graph does not tell which values are in memory at the same time, so the estimates count
 * feature maps of a part's widest level. For the U-Net and the decoder of the bundled model they are one to six times
 * what is measured (`test/integration/inference-memory.spec.ts`).
 */

/** Bytes that the sessions of a model take besides its weights and calls. */
export const sessionBytes = 50 * 2 ** 20;
/** Feature maps of the U-Net's largest level that are alive at once, skip connections included. */
const liveMaps = 40;
/** Attention scores for each pair of positions of the latents, on devices without fused attention. */
const liveScores = 16;
/** Feature maps of the size of the picture that the decoder has in memory at once. */
const decodedMaps = 8;
/** Values per token that a text encoder has in memory at once, as a multiple of the sum of its two widths. */
const liveValues = 3;
/** Feature maps of the size of the upscaled tile, and their channels: ESRGAN's, as a graph does not tell them. */
const upscaled = { maps: 6, channels: 64 };
const float32 = 4;
/** Names of the weights of a VAE's encoder, which is loaded when it first has to encode a picture. */
const encoderWeights = /^(?:encoder|quant_conv)\./;

/**
 * Bytes of a model's weights in memory. A CUDA device has float16 (except the VAE), all others float32; but on the
 * processor the weights of a large part stay in half precision if they are stored so.
 */
export function weightBytesOf({ tensors }: Pick<ModelFolder, 'tensors'>, device: Device): number {
  let bytes = sessionBytes;
  for (const [part, ofPart] of tensors) {
    const read = [...ofPart].filter(([name]) => part !== 'vae' || !encoderWeights.test(name));
    const sizes = read.map(([, { shape, type }]) => ({ bytes: float32 * countOf(shape), isHalf: type !== 'F32' }));
    const halves = sizes.reduce((sum, size) => sum + (size.isHalf ? size.bytes : 0), 0);
    const all = sizes.reduce((sum, size) => sum + size.bytes, 0);
    if (providerOf(device) === 'cuda' && part !== 'vae') bytes += all / 2;
    else bytes += device === 'cpu' && halves > mostWidenedBytes ? all - halves / 2 : all;
  }
  return bytes;
}

/** An upper estimate of the bytes that encoding this many rows of tokens takes. */
export function encodeTextBytes({ textEncoder: { hidden, inner, tokens } }: ModelWidths, rows: number): number {
  return rows * liveValues * tokens * (hidden + inner) * float32;
}

/** An upper estimate of the bytes that a row of a call of the U-Net takes, without its adapters. */
export function bytesPerRow({ channels, scale }: ModelWidths, { width, height }: Size, provider: Provider): number {
  const positions = (width / scale) * (height / scale);
  const scores = provider === 'webgpu' ? liveScores * positions ** 2 : 0;
  return (liveMaps * channels * positions + scores) * float32;
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

/** An upper estimate of the bytes that decoding a picture takes. */
export function decodeBytes({ decoderChannels }: ModelWidths, { width, height }: Size): number {
  return decodedMaps * decoderChannels * width * height * float32;
}

/** An upper estimate of the bytes that encoding a picture takes, the weights of the encoder included. */
export function encodePictureBytes(folder: Pick<ModelFolder, 'tensors'>, widths: ModelWidths, size: Size): number {
  const encoder = [...folder.tensors.get('vae')!].filter(([name]) => encoderWeights.test(name));
  return sessionBytes + float32 * valuesIn(encoder) + decodeBytes(widths, size);
}

/** Largest number of rows that a picture has in a call of the U-Net. */
export const maxRowsPerPicture = (kind: ModelKind): number => (kind === 'instruct-pix2pix' ? 3 : 2);

/** Bytes of a ControlNet's row, as a part of those of the U-Net's: it has only the down blocks. */
export const controlRatio = 1 / 2;

/** Bytes of a ControlNet's weights in memory. */
export function controlWeightBytesOf({ tensors }: Pick<ControlFolder, 'tensors'>, device: Device): number {
  return sessionBytes + (providerOf(device) === 'cuda' ? float32 / 2 : float32) * valuesIn([...tensors]);
}

const valuesIn = (tensors: readonly [name: string, tensor: { shape: readonly number[] }][]): number =>
  tensors.reduce((sum, [, { shape }]) => sum + countOf(shape), 0);

/** An upper estimate of the bytes that upscaling a tile takes. @param scale of its edges */
export function tileBytes({ width, height }: Size, scale: number): number {
  return upscaled.maps * upscaled.channels * width * height * scale ** 2 * float32;
}
