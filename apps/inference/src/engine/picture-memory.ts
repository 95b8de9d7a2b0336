import type { ModelFacts, ModelWidths } from '@app/diffusion';

/** The model that draws: its element types are known once it is loaded, and taken to be the larger ones before. */
interface Drawn {
  widths: ModelWidths;
  dtypes?: Pick<ModelFacts['dtypes'], 'unet' | 'vaeDecoder'>;
}

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
 * An upper estimate of the bytes that one row of a call of the U-Net takes: the scores of self-attention before and
 * after the softmax, and the feature maps.
 */
export function bytesPerRow({ widths, dtypes }: Drawn, size: Size): number {
  const { channels, attention } = widths;
  const positions = positionsOf(widths, size);
  const attended = positions / 4 ** attention.level;
  return (2 * attention.heads * attended ** 2 + liveMaps * channels * positions) * bytesOf(dtypes?.unet);
}

/** Bytes that decoding a picture takes: the VAE’s attention has one head, at the size of the latents. */
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
