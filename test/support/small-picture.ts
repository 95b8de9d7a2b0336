import sharp from 'sharp';

/** A PNG of one colour. */
export const smallPicture = (background = '#f00', width = 16, height = 16): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background } })
    .png()
    .toBuffer();
