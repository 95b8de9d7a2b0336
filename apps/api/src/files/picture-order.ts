import type { OutputFormat } from '@app/domain';

/** Width and height in pixels. */
export interface Size {
  width: number;
  height: number;
}

/** A marked picture: all its inputs. */
export interface SandboxPictureOrder {
  /** The beginning of the prompt. */
  lines: string[];
  /** Angle of the hatching, in degrees. */
  hue: number;
  /** The size at which it is drawn, and the size to which it is enlarged. */
  base: Size;
  size: Size;
  format: OutputFormat;
}
