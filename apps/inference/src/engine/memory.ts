import { type ModelFolder, type ModelWidths, providerOf, type Device } from '@app/diffusion';

/** Edges in pixels: of a picture, or of what an upscaler enlarges. */
interface Size {
  width: number;
  height: number;
}

/** Bytes that calls of a model's sessions take, which keep them until they end. */
export interface CallBytes {
  textEncoder?: number;
  unet?: number;
  vaeDecoder?: number;
  upscaler?: number;
}

/** What sessions need besides their weights and their calls. */
export const sessionBytes = 50 * 2 ** 20;
/** Feature maps of the U-Net's largest level that are alive at once, skip connections included. */
const liveMaps = 40;
/** Feature maps of the size of the picture that the decoder holds. */
const decodedMaps = 8;
/** Values of a text encoder's layer that are alive at once for each token, in multiples of both its widths. */
const liveValues = 3;
/** Feature maps of the size of the enlarged tile, and their channels, which are ESRGAN's: a graph does not tell them. */
const enlarged = { maps: 6, channels: 64 };
const float32 = 4;

/** Bytes of a model's weights in memory: float32, and half of that on a GPU that draws with float16. */
export function weightBytes({ tensors }: Pick<ModelFolder, 'tensors'>, device: Device): number {
  let bytes = sessionBytes;
  for (const [part, ofPart] of tensors)
    for (const [name, { shape }] of ofPart) {
      if (part === 'vae' && /^(?:encoder|quant_conv)\./.test(name)) continue;
      const each = providerOf(device) === 'cuda' && part !== 'vae' ? float32 / 2 : float32;
      bytes += each * shape.reduce((product, length) => product * length, 1);
    }
  return bytes;
}

/** An upper estimate of the bytes that encoding so many rows of tokens takes. */
export function encodeBytes({ textEncoder: { hidden, inner, tokens } }: ModelWidths, rows: number): number {
  return rows * liveValues * tokens * (hidden + inner) * float32;
}

/** An upper estimate of the bytes that a row of a call of the U-Net takes. */
export function bytesPerRow({ channels, scale }: ModelWidths, { width, height }: Size): number {
  return liveMaps * channels * (width / scale) * (height / scale) * float32;
}

/** An upper estimate of the bytes that decoding a picture takes. */
export function decodeBytes({ decoderChannels }: ModelWidths, { width, height }: Size): number {
  return decodedMaps * decoderChannels * width * height * float32;
}

/** An upper estimate of the bytes that enlarging a tile takes. @param scale by which its edges become longer */
export function tileBytes({ width, height }: Size, scale: number): number {
  return enlarged.maps * enlarged.channels * width * height * scale ** 2 * float32;
}
