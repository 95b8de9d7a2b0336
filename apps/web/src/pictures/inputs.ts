import { bringUp } from '../draw/bring-up';
import { change, draft, settingsOf } from '../draw/draft';
import { sizeDrawnFrom } from '../../../../libs/diffusion/src/families/sizes';
import { sizeRules } from '../draw/shape';
import type { Drawing } from '../drawings/drawing';
import { sessionSignal } from '../session/session';
import { sentPicture, type Upload } from './sent-picture';

/** Neither a part nor what is around is drawn alone. */
const nothingAround = { mask: undefined, outpaint: undefined };

/** Whether the dialog is open in which a mask is painted. */
export const isPainting = sessionSignal(() => false);

/** Starts from a sent picture, in its own shape. */
export function startFrom({ size, ...image }: Upload): void {
  change({ image, ...nothingAround, aspect_ratio: null, ...sizeDrawnFrom(sizeRules.value, size) });
}

export const startFromNothing = (): void => change({ image: undefined, ...nothingAround });

/** Goes to the form to draw from a picture, or to its mask first. */
export function drawOnAndShow(drawing: Drawing, index: number, isRepainted: boolean): void {
  drawOn(drawing, index);
  bringUp('form', isRepainted ? 'Mark the part to repaint.' : 'The picture is in the form, to draw on from it.');
  if (isRepainted) isPainting.value = true;
}

/** Fills the form with a drawn picture and its settings. */
function drawOn(drawing: Drawing, index: number): void {
  const { seed } = draft.value;
  change({
    ...settingsOf(drawing),
    ...{ seed, num_generations: 1, control: [], references: [], ...nothingAround },
    image: sentPicture(drawing.publicUrls[index]),
    finetuneId: drawing.finetuneId,
  });
}
