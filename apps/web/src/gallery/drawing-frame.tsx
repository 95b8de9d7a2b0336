import type { Drawing } from '../drawings/drawing';
import { isOpen } from '../drawings/drawing';
import { progress } from '../drawings/store';
import { texts } from '../texts';

interface DrawingFrameProps {
  drawing: Drawing;
  index: number;
  isLarge?: boolean;
}

/**
 * A picture, what is there of it so far, or why there is none. Its box has its final shape from the beginning,
 * so that nothing moves.
 */
export function DrawingFrame({ drawing, index, isLarge = false }: DrawingFrameProps) {
  const url = drawing.images[index];
  if (url)
    return <img class="picture" src={url} alt={drawing.prompt} loading={isLarge ? 'eager' : 'lazy'} decoding="async" />;
  const preview = progress.value.get(drawing.id)?.preview;
  if (isOpen(drawing))
    return preview ? (
      <img class="picture is-preview" src={preview} alt="" data-testid="preview" />
    ) : (
      <span class="undeveloped" aria-hidden="true" />
    );
  return (
    <span class={`no-picture is-${drawing.status}`}>
      <b>{texts.status[drawing.status]}</b>
      {drawing.error && <span>{drawing.error}</span>}
    </span>
  );
}
