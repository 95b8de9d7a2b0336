import { useRef, useState } from 'preact/hooks';
import type { Drawing } from '../drawings/drawing';
import { texts } from '../texts';
import { IconButton } from '../ui/icon-button';
import { DrawingFrame } from './drawing-frame';
import { ProgressLine } from './progress-line';

/** 0 is as large as fits; the others are multiples of it. */
const zooms = [0, 1.5, 2, 3, 4, 6] as const;

interface PictureProps {
  drawing: Drawing;
  index: number;
}

/** A picture that can be enlarged, by buttons or a double click, and moved by dragging or scrolling. */
export function Picture({ drawing, index }: PictureProps) {
  const [zoom, setZoom] = useState(0);
  const pane = useRef<HTMLDivElement>(null);
  const url = drawing.images[index];
  if (!url)
    return (
      <div class={`viewer-empty is-${drawing.aspectRatio}`}>
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
        aria-label={zoom > 0 ? texts.viewer.label : undefined}
        onPointerDown={(event) => startDrag(event, pane.current)}
        onDblClick={() => setZoom(zoom > 0 ? 0 : 2)}
      >
        <img
          class="full"
          src={url}
          alt={drawing.prompt}
          style={zoom > 0 ? { width: `${zooms[zoom] * 100}%`, maxWidth: 'none', maxHeight: 'none' } : undefined}
          draggable={false}
        />
      </div>
      <Zoom zoom={zoom} onChange={setZoom} />
    </>
  );
}

function Zoom({ zoom, onChange }: { zoom: number; onChange: (zoom: number) => void }) {
  return (
    <div class="zoom">
      <IconButton icon="minus" label={texts.viewer.zoomOut} disabled={zoom === 0} onClick={() => onChange(zoom - 1)} />
      <output>{zoom === 0 ? texts.viewer.fit : `${zooms[zoom] * 100} %`}</output>
      <IconButton
        icon="plus"
        label={texts.viewer.zoomIn}
        disabled={zoom === zooms.length - 1}
        onClick={() => onChange(zoom + 1)}
      />
    </div>
  );
}

/** Scrolls an enlarged picture with the pointer. Touch scrolls by itself. */
function startDrag(event: PointerEvent, pane: HTMLElement | null): void {
  if (!pane || event.pointerType !== 'mouse' || event.button !== 0) return;
  const { scrollLeft, scrollTop } = pane;
  const { clientX, clientY } = event;
  const move = (next: PointerEvent): void =>
    pane.scrollTo(scrollLeft + clientX - next.clientX, scrollTop + clientY - next.clientY);
  const end = (): void => {
    removeEventListener('pointermove', move);
    removeEventListener('pointerup', end);
  };
  addEventListener('pointermove', move);
  addEventListener('pointerup', end);
}
