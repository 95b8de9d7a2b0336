import type { Box, Size } from './crop';
import type { SentPicture } from './sent-picture';

type Point = readonly [x: number, y: number];

/** One stroke of the brush, or a rectangle, in pixels of the mask. */
export type Shape = { isErasing: boolean } & ({ points: Point[]; width: number } | { rectangle: Box });

/** A mask, with its shapes so that it can be edited further. */
export interface Mask extends SentPicture {
  shapes?: readonly Shape[];
  /** Softness of its edges, in percent. */
  feather?: number;
}

/** A mask needs no more pixels than the drawn picture. */
const longestEdge = 1536;

/** The picture's own size, or a smaller one of its shape. */
export function maskSizeOf({ width, height }: Size): Size {
  const scale = Math.min(1, longestEdge / Math.max(width, height));
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}

type Context = CanvasRenderingContext2D;

const colour = '#ff4d2b';

/** Paints the shapes on a transparent ground. */
export function paint(context: Context, shapes: readonly Shape[]): void {
  context.globalCompositeOperation = 'source-over';
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  for (const shape of shapes) paintShape(context, shape);
}

export function paintShape(context: Context, shape: Shape): void {
  context.globalCompositeOperation = shape.isErasing ? 'destination-out' : 'source-over';
  context.fillStyle = context.strokeStyle = colour;
  if ('rectangle' in shape) {
    const { width, height } = context.canvas;
    const { left, top, ...edges } = shape.rectangle;
    const [w, h] = [width / 100, height / 100];
    context.fillRect(left * w, top * h, edges.width * w, edges.height * h);
    return;
  }
  context.lineCap = context.lineJoin = 'round';
  context.lineWidth = shape.width;
  context.beginPath();
  const [[x, y], ...rest] = shape.points;
  context.moveTo(x, y);
  // Some browsers paint no dot of length zero.
  context.lineTo(x + 0.01, y);
  for (const point of rest) context.lineTo(...point);
  context.stroke();
}

/** As a part of the longer edge. */
const softest = 0.05;

/** Width of a soft edge, in pixels of the mask. @param feather from 0 to 1 */
export const featherOf = (feather: number, { width, height }: Size): number =>
  feather * softest * Math.max(width, height);

/**
 * The finished mask as a PNG: white is repainted, black is kept, with a soft edge between them.
 * @param painted what is repainted, in any colour on a transparent ground
 */
export function maskFile(painted: HTMLCanvasElement, feather: number): Promise<Blob | null> {
  const { width, height } = painted;
  const file = document.createElement('canvas');
  Object.assign(file, { width, height });
  const context = file.getContext('2d')!;
  context.fillStyle = '#000';
  context.fillRect(0, 0, width, height);
  // Blurs by the shadow of a shape beside the canvas: not every browser has a blur filter.
  context.shadowColor = '#fff';
  context.shadowBlur = 2 * featherOf(feather, { width, height });
  context.shadowOffsetX = width;
  context.drawImage(painted, -width, 0);
  return new Promise((resolve) => file.toBlob(resolve));
}
