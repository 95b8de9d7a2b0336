import { isOpen, isWhole, type Listed, type Progress, statusText } from '../drawings/drawing';
import { progress, wholeOf } from '../drawings/store';

interface DrawingFrameProps {
  drawing: Listed;
  index: number;
  isLarge?: boolean;
}

/** A picture, its preview, or why there is none. The box has its final shape from the start, so that nothing moves. */
export function DrawingFrame({ drawing, index, isLarge = false }: DrawingFrameProps) {
  const small = isLarge || index > 0 ? null : drawing.thumbnail;
  const url = small ?? (isWhole(drawing) ? drawing.images[index] : drawing.thumbnail);
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
      <b>{statusText[drawing.status]}</b>
      {drawing.error && <span>{drawing.error}</span>}
    </span>
  );
}

/** The step bar, and the place in the queue before it. */
export function ProgressLine({ drawing }: { drawing: Listed }) {
  if (!isOpen(drawing)) return null;
  const known = progress.value.get(drawing.id) ?? { step: 0, total: wholeOf(drawing.id)?.steps ?? 1 };
  const { step, total } = known;
  return (
    <span class="progress-line">
      <progress max={total} value={step} aria-label="Progress" />
      <span class="progress-text">{sentence(drawing, known)}</span>
    </span>
  );
}

function sentence(drawing: Listed, known: Progress): string {
  if (known.isSilent) return 'Its worker is silent. Waiting for a worker';
  const text = sentenceOf(drawing, known);
  return known.isAgain ? `${text} (drawn again)` : text;
}

function sentenceOf({ status }: Listed, { step, total, position }: Progress): string {
  if (step >= total) return 'Developing';
  if (step > 0) return `Step ${step} of ${total}`;
  if (status === 'processing') return 'Starting';
  return position === undefined
    ? 'Waiting for its turn'
    : position === 0
      ? 'Next in the queue'
      : `${position} ${position === 1 ? 'picture' : 'pictures'} before this one`;
}
