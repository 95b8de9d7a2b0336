import type { OutputFormat } from '@app/domain';

/** Width and height in pixels. */
export interface Size {
  width: number;
  height: number;
}

/** A marked picture: all its inputs. */
export interface SandboxPictureOrder {
  kind: 'sandbox';
  /** The beginning of the prompt. */
  lines: string[];
  /** Angle of the hatching, in degrees. */
  hue: number;
  /** The size at which it is drawn, and the size to which it is enlarged. */
  base: Size;
  size: Size;
  format: OutputFormat;
}

/** The thumbnail of a picture file. */
export interface ThumbnailOrder {
  kind: 'thumbnail';
  path: string;
  /** A picture with more pixels is rejected before it is decoded. */
  maxPixels: number;
}

/** A request to the picture process, which returns the bytes of a file. */
export type PictureOrder = SandboxPictureOrder | ThumbnailOrder;
