import {
  type ControlFolder,
  countOf,
  type Device,
  hasCallsInPowersOfTwo,
  type ModelFolder,
  type ModelWidths,
  mostWidenedBytes,
  powerOfTwoUpTo,
  type Provider,
  providerOf,
  type Trajectory,
} from '@app/diffusion';

/** Edges in pixels: of a picture, or of what an upscaler enlarges. */
interface Size {
  width: number;
  height: number;
}

/** Bytes that the largest call of each part of a model takes: a session keeps them until it is released. */
export interface CallBytes {
  textEncoder?: number;
  vaeEncoder?: number;
  unet?: number;
  vaeDecoder?: number;
  upscaler?: number;
}

/*
 * Factors of the estimates. A graph does not tell which of its values live at the same time, so they are counted in
 * feature maps of the widest level of a part. They are so chosen that the estimates for U-Net and decoder are above what
 * was measured with the bundled model, and below six times that; `test/integration/inference-memory.spec.ts` measures
 * it again.
 */

/** Bytes that sessions need besides their weights and their calls. */
export const sessionBytes = 50 * 2 ** 20;
/** Feature maps of the U-Net's largest level that are alive at once, skip connections included. */
const liveMaps = 40;
/** Scores of attention for each pair of positions of the latents, where no fused attention does without them. */
const liveScores = 16;
/** Feature maps of the size of the picture that the decoder holds. */
const decodedMaps = 8;
/** Values of a text encoder's layer that are alive at once for each token, in multiples of both its widths. */
const liveValues = 3;
/** Feature maps of the size of the enlarged tile, and their channels, which are ESRGAN's: a graph does not tell them. */
const enlarged = { maps: 6, channels: 64 };
const float32 = 4;
/** Weights of the encoder of a VAE, which is loaded for the first picture that it reads. */
const ofEncoder = /^(?:encoder|quant_conv)\./;

/**
 * Bytes of a model's weights in memory: float32, and half of that on a GPU that draws with float16. On the processor a
 * large part with weights in half precision keeps these as they are.
 */
export function weightBytes({ tensors }: Pick<ModelFolder, 'tensors'>, device: Device): number {
  let bytes = sessionBytes;
  for (const [part, ofPart] of tensors) {
    const read = [...ofPart].filter(([name]) => part !== 'vae' || !ofEncoder.test(name));
    const sizes = read.map(([, { shape, type }]) => ({ bytes: float32 * countOf(shape), isHalf: type !== 'F32' }));
    const halves = sizes.reduce((sum, size) => sum + (size.isHalf ? size.bytes : 0), 0);
    const all = sizes.reduce((sum, size) => sum + size.bytes, 0);
    if (providerOf(device) === 'cuda' && part !== 'vae') bytes += all / 2;
    else bytes += device === 'cpu' && halves > mostWidenedBytes ? all - halves / 2 : all;
  }
  return bytes;
}

/** An upper estimate of the bytes that encoding so many rows of tokens takes. */
export function encodeBytes({ textEncoder: { hidden, inner, tokens } }: ModelWidths, rows: number): number {
  return rows * liveValues * tokens * (hidden + inner) * float32;
}

/** An upper estimate of the bytes that a row of a call of the U-Net takes, without its adapters. */
export function bytesPerRow({ channels, scale }: ModelWidths, { width, height }: Size, provider: Provider): number {
  const positions = (width / scale) * (height / scale);
  const scores = provider === 'webgpu' ? liveScores * positions ** 2 : 0;
  return (liveMaps * channels * positions + scores) * float32;
}

/** Rows of a call that fit into so many bytes, as many as the device takes at once; one in any case. */
export function fittingRows(bytes: number, rowBytes: number, device: Device): number {
  const rows = Math.max(1, Math.floor(bytes / rowBytes));
  return hasCallsInPowersOfTwo(device) ? powerOfTwoUpTo(rows) : rows;
}

/** Bytes that the factors of a row's adapters take in a call: each row of it has its own. */
export function adapterBytes({ adapters }: Pick<Trajectory, 'adapters'>): number {
  return [...adapters.values()].reduce((sum, { a, b }) => sum + a.byteLength + b.byteLength, 0);
}

/** An upper estimate of the bytes that decoding a picture takes. */
export function decodeBytes({ decoderChannels }: ModelWidths, { width, height }: Size): number {
  return decodedMaps * decoderChannels * width * height * float32;
}

/** An upper estimate of the bytes that reading a picture takes, with the weights of what does. */
export function pictureBytes(folder: Pick<ModelFolder, 'tensors'>, widths: ModelWidths, size: Size): number {
  const encoder = [...folder.tensors.get('vae')!].filter(([name]) => ofEncoder.test(name));
  return sessionBytes + float32 * valuesIn(encoder) + decodeBytes(widths, size);
}

/** Bytes of a ControlNet's weights in memory. */
export function controlBytes({ tensors }: Pick<ControlFolder, 'tensors'>, device: Device): number {
  return sessionBytes + (providerOf(device) === 'cuda' ? float32 / 2 : float32) * valuesIn([...tensors]);
}

const valuesIn = (tensors: readonly [name: string, tensor: { shape: readonly number[] }][]): number =>
  tensors.reduce((sum, [, { shape }]) => sum + countOf(shape), 0);

/** An upper estimate of the bytes that enlarging a tile takes. @param scale by which its edges become longer */
export function tileBytes({ width, height }: Size, scale: number): number {
  return enlarged.maps * enlarged.channels * width * height * scale ** 2 * float32;
}
