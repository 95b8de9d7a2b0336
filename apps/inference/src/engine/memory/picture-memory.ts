import type { ModelFacts, ModelWidths } from '@app/diffusion';

/** The model that draws: its element types are known once it is loaded, and taken to be the larger ones before. */
interface Drawn {
  widths: ModelWidths;
  dtypes?: ModelFacts['dtypes'];
}

/** Edges in pixels: of the picture, or of what an upscaler enlarges. */
interface Size {
  width: number;
  height: number;
}

/**
 * Feature maps of the U-Net's largest level that are alive at once, skip connections included; 25 to 34 were measured.
 */
const liveMaps = 40;
/** Feature maps of the size of the picture that the decoder's arena holds; 4.1 to 6.0 were measured. */
const decodedMaps = 8;

/**
 * Values of a layer of the text encoder that are alive at once for each token, in multiples of both its widths. Calls
 * of 2 to 64 rows of Stable Diffusion 1.x's held 2.4 to 2.6 MiB a row, of which this estimates 3.9.
 */
const liveValues = 3;
/**
 * Feature maps of the size of the enlarged tile that an upscaler's arena holds; 3.9 and 4.0 were measured of ESRGAN.
 * Their channels are ESRGAN's, because a graph does not tell: smaller upscalers have as many or fewer.
 */
const enlarged = { maps: 6, channels: 64 };

/** An upper estimate of the bytes that encoding takes. @param rows of tokens */
export function encodeBytes({ widths, dtypes }: Drawn, rows: number): number {
  const { hidden, inner, heads, tokens } = widths.textEncoder;
  const scores = 2 * heads * tokens ** 2;
  return rows * (scores + liveValues * tokens * (hidden + inner)) * bytesOf(dtypes?.textEncoder);
}

/** An upper estimate of the bytes that enlarging a tile takes. @param scale by which its edges become longer */
export function tileBytes({ width, height }: Size, scale: number): number {
  return enlarged.maps * enlarged.channels * width * height * scale ** 2 * bytesOf();
}

/**
 * An upper estimate of the bytes that one row of a call of the U-Net takes: the scores of self-attention before and
 * after the softmax, and the feature maps.
 */
export function bytesPerRow({ widths, dtypes }: Drawn, size: Size): number {
  const { channels, attention } = widths;
  const positions = positionsOf(widths, size);
  const attended = positions / 4 ** attention.level;
  return (2 * attention.heads * attended ** 2 + liveMaps * channels * positions) * bytesOf(dtypes?.unet);
}

/**
 * An upper estimate of the bytes that decoding a picture takes: the VAE’s attention has one head, at the size of the
 * latents.
 */
export function decodeBytes({ widths, dtypes }: Drawn, size: Size): number {
  const maps = decodedMaps * widths.decoderChannels * size.width * size.height;
  return Math.max(maps, 2 * positionsOf(widths, size) ** 2) * bytesOf(dtypes?.vaeDecoder);
}

function positionsOf({ scale }: ModelWidths, { width, height }: Size): number {
  return (width / scale) * (height / scale);
}

function bytesOf(type?: 'float32' | 'float16'): number {
  return type === 'float16' ? 2 : 4;
}
