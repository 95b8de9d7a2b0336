import { type Drawing, shapeText } from '../drawings/drawing';
import { seedOf } from '../drawings/service-rules';
import { finetuneOf, titleOf } from '../finetunes/finetunes';
import { ownScheduler } from '../models/models';
import type { Fact } from '../ui/card';

interface PictureFact extends Fact {
  isLong?: boolean;
}

function usedText({ id, scale }: Drawing['finetunes'][number]): string {
  const finetune = finetuneOf(id);
  return `${finetune ? titleOf(finetune) : id} (${scale})`;
}

const controlText = ({ model, scale, start, end }: Drawing['control'][number]): string =>
  `${model} (${scale}, ${start} to ${end})`;

const picturesText = (count: number): string => (count === 1 ? 'a picture' : `${count} pictures`);

/** Facts about a picture. */
export function factsOf(drawing: Drawing, index: number): PictureFact[] {
  const finetune = finetuneOf(drawing.finetuneId);
  const shape = shapeText(drawing);
  return [
    { name: 'Not', value: drawing.negative_prompt ?? '', isLong: true },
    // Which of the pictures are there is not known then.
    drawing.filtered > 0
      ? { name: 'Filtered', value: picturesText(drawing.filtered) }
      : { name: 'Seed', value: String(seedOf(drawing, index)) },
    { name: 'Steps', value: String(drawing.steps) },
    { name: 'Guidance (cfg)', value: String(drawing.cfg) },
    { name: 'Scheduler', value: drawing.scheduler ?? ownScheduler(null) },
    { name: 'Shape', value: drawing.high_resolution ? `${shape}, high resolution` : shape },
    finetune ? { name: 'Fine-Tune', value: titleOf(finetune) } : { name: 'Model', value: drawing.model ?? '' },
    ...(drawing.strength === null ? [] : [{ name: 'Strength', value: String(drawing.strength) }]),
    ...(drawing.outpaint === null ? [] : [{ name: 'Drawn', value: 'around the picture' }]),
    ...(drawing.mask === null ? [] : [{ name: 'Repainted', value: 'a part of the picture' }]),
    ...(drawing.references.length > 0 ? [{ name: 'Looks at', value: picturesText(drawing.references.length) }] : []),
    ...(drawing.control.length > 0 ? [{ name: 'Follows', value: drawing.control.map(controlText).join(', ') }] : []),
    ...(drawing.finetunes.length > 0 ? [{ name: 'With', value: drawing.finetunes.map(usedText).join(', ') }] : []),
    ...(drawing.served_by === null ? [] : [{ name: 'Drawn by', value: drawing.served_by }]),
    ...(drawing.user ? [{ name: 'For', value: drawing.user }] : []),
    { name: 'Asked for', value: new Date(drawing.created_at).toLocaleString() },
  ];
}
