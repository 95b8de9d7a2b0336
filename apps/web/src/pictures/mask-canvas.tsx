import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Size } from './crop';
import { featherOf, maskSizeOf, paint, paintShape, type Shape } from './mask';

interface MaskCanvasProps {
  canvas: RefObject<HTMLCanvasElement | null>;
  /** Of the picture. */
  whole: Size;
  shapes: readonly Shape[];
  /** How soft edges are, from 0 to 1. */
  feather: number;
  /** Width as a part of the longer edge. */
  brush: number;
  isErasing: boolean;
  onShape: (shape: Shape) => void;
}

type Stroke = Extract<Shape, { points: unknown }>;

/** The part to repaint, over its picture, painted with a mouse, a pen or a finger. */
export function MaskCanvas({ canvas, whole, shapes, feather, brush, isErasing, onShape }: MaskCanvasProps) {
  const size = maskSizeOf(whole);
  const stroke = useRef<Stroke | undefined>(undefined);
  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (context) paint(context, shapes);
  }, [shapes]);
  const start = (event: PointerEvent): void => {
    if (!event.isPrimary || event.button !== 0 || !canvas.current) return;
    event.preventDefault();
    canvas.current.setPointerCapture(event.pointerId);
    stroke.current = { isErasing, width: Math.max(2, brush * Math.max(size.width, size.height)), points: [] };
    extend(canvas.current, stroke.current, event);
  };
  const move = (event: PointerEvent): void => {
    if (event.isPrimary && stroke.current && canvas.current) extend(canvas.current, stroke.current, event);
  };
  const end = (): void => {
    const finished = stroke.current;
    stroke.current = undefined;
    if (finished) onShape(finished);
  };
  const shownWidth = canvas.current?.clientWidth ?? size.width;
  return (
    <canvas
      ref={canvas}
      class="mask-canvas"
      {...size}
      style={{ filter: `blur(${(featherOf(feather, size) * shownWidth) / size.width}px)` }}
      role="img"
      aria-label={shapes.length === 0 ? 'Nothing is painted yet' : 'What is repainted'}
      // Otherwise the browser takes a quick stroke for a fling, and swallows the next tap.
      onTouchStart={(event) => event.preventDefault()}
      onPointerDown={start}
      onPointerMove={move}
      onPointerUp={end}
      onPointerCancel={end}
    />
  );
}

/** Paints only what is new, so that a long stroke stays quick. */
function extend(canvas: HTMLCanvasElement, stroke: Stroke, event: PointerEvent): void {
  const { left, top, width, height } = canvas.getBoundingClientRect();
  // A browser joins several moves in one event.
  const moves = event.getCoalescedEvents?.() ?? [];
  for (const { clientX, clientY } of moves.length > 0 ? moves : [event])
    stroke.points.push([((clientX - left) / width) * canvas.width, ((clientY - top) / height) * canvas.height]);
  const added = Math.max(1, moves.length) + 1;
  paintShape(canvas.getContext('2d')!, { ...stroke, points: stroke.points.slice(-added) });
}
