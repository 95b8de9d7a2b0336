import type { Drawing, Progress } from '../drawings/drawing';
import { isOpen } from '../drawings/drawing';
import { progress } from '../drawings/store';
import { texts } from '../texts';

/** The step bar, and the place in the queue before it. */
export function ProgressLine({ drawing }: { drawing: Drawing }) {
  if (!isOpen(drawing)) return null;
  const known = progress.value.get(drawing.id) ?? { step: 0, total: drawing.steps };
  const { step, total } = known;
  return (
    <span class="progress-line">
      <progress max={total} value={step} aria-label={texts.progress.label} />
      <span class="progress-text">{sentence(drawing, known)}</span>
    </span>
  );
}

function sentence(drawing: Drawing, known: Progress): string {
  if (known.isSilent) return texts.progress.silent;
  const text = sentenceOf(drawing, known);
  return known.isAgain ? texts.progress.again(text) : text;
}

function sentenceOf({ status }: Drawing, { step, total, position }: Progress): string {
  if (step >= total) return texts.progress.finishing;
  if (step > 0) return texts.progress.step(step, total);
  if (status === 'processing') return texts.progress.starting;
  return position === undefined ? texts.progress.waiting : texts.progress.position(position);
}
