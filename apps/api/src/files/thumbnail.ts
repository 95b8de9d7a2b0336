import sharp from 'sharp';
import type { ThumbnailOrder } from './picture-order';

/** Width and height of a thumbnail, in pixels. */
const edge = 256;

/** A square crop of the most interesting part, without the picture's metadata. */
export async function drawThumbnail({ path, maxPixels }: ThumbnailOrder): Promise<Uint8Array> {
  return sharp(path, { limitInputPixels: maxPixels })
    .resize(edge, edge, { fit: 'cover', position: sharp.strategy.attention })
    .png({ compressionLevel: 9 })
    .toBuffer();
}
