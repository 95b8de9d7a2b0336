import { useRef, useState } from 'preact/hooks';
import type { Drawing } from '../drawings/drawing';
import { IconButton } from '../ui/buttons';
import { DrawingFrame, ProgressLine } from './drawing-frame';

/** Multiples of the size that fits, which is the first. */
const zooms = [1, 1.5, 2, 3, 4, 6] as const;

/** CSS pixels of the picture where it just fits, and its own pixels. */
interface Width {
  fitting: number;
  own: number;
}

/** A picture of a drawing. */
export interface PictureProps {
  drawing: Drawing;
  index: number;
}

/** Enlarged by buttons or a double click, moved by dragging or scrolling. */
export function Picture({ drawing, index }: PictureProps) {
  const [zoom, setZoomed] = useState(0);
  const [{ fitting, own }, setWidth] = useState<Width>({ fitting: 1, own: 1 });
  const image = useRef<HTMLImageElement>(null);
  const setZoom = (next: number): void => {
    if (zoom === 0 && image.current) setWidth({ fitting: image.current.clientWidth, own: image.current.naturalWidth });
    setZoomed(next);
  };
  const width = fitting * zooms[zoom];
  const pane = useRef<HTMLDivElement>(null);
  const url = drawing.images[index];
  if (!url)
    return (
      <div class="viewer-empty">
        <DrawingFrame drawing={drawing} index={0} isLarge />
        <ProgressLine drawing={drawing} />
      </div>
    );
  return (
    <>
      <div
        class={`pane ${zoom > 0 ? 'is-zoomed' : ''}`}
        ref={pane}
        tabIndex={zoom > 0 ? 0 : undefined}
        role={zoom > 0 ? 'group' : undefined}
        aria-label={zoom > 0 ? 'Picture' : undefined}
        onPointerDown={(event) => startDrag(event, pane.current)}
        onDblClick={() => setZoom(zoom > 0 ? 0 : 2)}
      >
        <img
          class="full"
          ref={image}
          src={url}
          alt={drawing.prompt}
          style={zoom > 0 ? { width: `${width}px`, maxWidth: 'none', maxHeight: 'none' } : undefined}
          draggable={false}
        />
      </div>
      <Zoom zoom={zoom} percent={Math.round((width / own) * 100)} onChange={setZoom} />
    </>
  );
}

/** @param percent shown size; 100 is one pixel for each of its own */
function Zoom(props: { zoom: number; percent: number; onChange: (zoom: number) => void }) {
  const { zoom, percent, onChange } = props;
  return (
    <div class="zoom">
      <IconButton icon="minus" label="Zoom out" disabled={zoom === 0} onClick={() => onChange(zoom - 1)} />
      <output>{zoom === 0 ? 'Fit' : `${percent} %`}</output>
      <IconButton icon="plus" label="Zoom in" disabled={zoom === zooms.length - 1} onClick={() => onChange(zoom + 1)} />
    </div>
  );
}

/** Touch scrolls by itself. */
function startDrag(event: PointerEvent, pane: HTMLElement | null): void {
  if (!pane || event.pointerType !== 'mouse' || event.button !== 0) return;
  const { scrollLeft, scrollTop } = pane;
  const { clientX, clientY } = event;
  const move = (next: PointerEvent): void =>
    pane.scrollTo(scrollLeft + clientX - next.clientX, scrollTop + clientY - next.clientY);
  const end = (): void => {
    removeEventListener('pointermove', move);
    removeEventListener('pointerup', end);
    removeEventListener('pointercancel', end);
  };
  addEventListener('pointermove', move);
  addEventListener('pointerup', end);
  addEventListener('pointercancel', end);
}
