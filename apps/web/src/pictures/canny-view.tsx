import { useEffect, useRef } from 'preact/hooks';
import { cannyEdges } from '../../../../libs/pictures/src/canny-edges';
import { cropOf, percentStyle, type Size } from './crop';

interface CannyViewProps {
  url: string;
  size: Size;
  /** Of what is drawn, width divided by height. */
  ratio: number;
}

/** Pixels, as many as the smallest models draw. */
const shorterEdge = 512;

/** The edges that the service would find in the part of the picture that is used. */
export function CannyView({ url, size, ratio }: CannyViewProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = cropOf(size, ratio);
  useEffect(() => {
    const image = new Image();
    image.onload = () => canvas.current && draw(canvas.current, image, ratio);
    image.src = url;
    return () => (image.onload = null);
  }, [url, ratio]);
  return (
    <canvas ref={canvas} class="canny" style={percentStyle(box)} role="img" aria-label="Edges that are followed" />
  );
}

function draw(canvas: HTMLCanvasElement, image: HTMLImageElement, ratio: number): void {
  canvas.width = Math.round(shorterEdge * Math.max(1, ratio));
  canvas.height = Math.round(shorterEdge * Math.max(1, 1 / ratio));
  const { width, height } = canvas;
  const context = canvas.getContext('2d', { willReadFrequently: true })!;
  const { naturalWidth, naturalHeight } = image;
  const box = cropOf({ width: naturalWidth, height: naturalHeight }, ratio);
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
