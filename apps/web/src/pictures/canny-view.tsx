import { useEffect, useRef } from 'preact/hooks';
import { cannyEdges } from '../../../../libs/pictures/src/canny-edges';
import type { AspectRatio } from '../drawings/drawing';
import { cropOf, percentStyle, ratioOf, type Size } from './crop';

interface CannyViewProps {
  url: string;
  size: Size;
  aspect: AspectRatio;
}

/** Pixels, as many as the smallest models draw. */
const shorterEdge = 512;

/** The edges that the service would find in the part of the picture that is used. */
export function CannyView({ url, size, aspect }: CannyViewProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = cropOf(size, aspect);
  useEffect(() => {
    const image = new Image();
    image.onload = () => canvas.current && draw(canvas.current, image, aspect);
    image.src = url;
    return () => (image.onload = null);
  }, [url, aspect]);
  return (
    <canvas ref={canvas} class="canny" style={percentStyle(box)} role="img" aria-label="Edges that are followed" />
  );
}

function draw(canvas: HTMLCanvasElement, image: HTMLImageElement, aspect: AspectRatio): void {
  const ratio = ratioOf[aspect];
  canvas.width = Math.round(shorterEdge * Math.max(1, ratio));
  canvas.height = Math.round(shorterEdge * Math.max(1, 1 / ratio));
  const { width, height } = canvas;
  const context = canvas.getContext('2d', { willReadFrequently: true })!;
  const { naturalWidth, naturalHeight } = image;
  const box = cropOf({ width: naturalWidth, height: naturalHeight }, aspect);
  const [x, w] = [box.left, box.width].map((percent) => (percent / 100) * naturalWidth);
  const [y, h] = [box.top, box.height].map((percent) => (percent / 100) * naturalHeight);
  context.fillStyle = '#fff';
  context.fillRect(0, 0, width, height);
  context.drawImage(image, x, y, w, h, 0, 0, width, height);
  const pixels = context.getImageData(0, 0, width, height);
  const rgb = pixels.data.filter((_, at) => at % 4 !== 3);
  const edges = cannyEdges({ width, height, data: new Uint8Array(rgb) }).data;
  for (let at = 0; at < width * height; at++) pixels.data.set(edges.subarray(3 * at, 3 * at + 3), 4 * at);
  context.putImageData(pixels, 0, 0);
}
