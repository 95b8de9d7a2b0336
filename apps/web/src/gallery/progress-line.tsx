import type { Drawing } from '../drawings/drawing';
import { isOpen } from '../drawings/drawing';
import { progress } from '../drawings/store';
import { texts } from '../texts';

/** The step bar, and the place in the queue before it. */
export function ProgressLine({ drawing }: { drawing: Drawing }) {
  if (!isOpen(drawing)) return null;
  const { step = 0, total = drawing.steps, position } = progress.value.get(drawing.id) ?? {};
  return (
    <span class="progress-line">
      <progress max={total} value={step} aria-label={texts.progress.label} />
      <span class="progress-text">{sentence(drawing, step, total, position)}</span>
    </span>
  );
}

function sentence({ status }: Drawing, step: number, total: number, position: number | undefined): string {
  if (step >= total) return texts.progress.finishing;
  if (step > 0) return texts.progress.step(step, total);
  if (status === 'processing') return texts.progress.starting;
  return position === undefined ? texts.progress.waiting : texts.progress.position(position);
}
