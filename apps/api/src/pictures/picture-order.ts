import type { OutputFormat } from '@app/domain';

/** Width and height in pixels. */
export interface Size {
  width: number;
  height: number;
}

/** A marked picture: all that it depends on. */
export interface SandboxPictureOrder {
  kind: 'sandbox';
  /** How the prompt begins. */
  lines: string[];
  /** Of the hatching, in degrees. */
  hue: number;
  /** At which it is drawn, and to which it is enlarged. */
  base: Size;
  size: Size;
  format: OutputFormat;
}

/** The thumbnail of a picture that lies in a file. */
export interface ThumbnailOrder {
  kind: 'thumbnail';
  path: string;
  /** A picture with more is refused before it is decoded. */
  maxPixels: number;
}

/** What the picture process is asked for; it answers with the bytes of a file. */
export type PictureOrder = SandboxPictureOrder | ThumbnailOrder;
