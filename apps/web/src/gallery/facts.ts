import type { Drawing } from '../drawings/drawing';
import { seedOf } from '../drawings/service-rules';
import { finetuneOf, titleOf } from '../finetunes/finetunes';
import { texts } from '../texts';
import type { Fact } from '../ui/facts';

interface PictureFact extends Fact {
  isLong?: boolean;
}

/** What is known about a picture. */
export function factsOf(drawing: Drawing, index: number): PictureFact[] {
  const finetune = finetuneOf(drawing.finetuneId);
  const shape = texts.draw.aspects[drawing.aspectRatio];
  return [
    { name: texts.viewer.negative, value: drawing.negativePrompt ?? '', isLong: true },
    { name: texts.draw.seed, value: String(seedOf(drawing, index)) },
    { name: texts.draw.steps, value: String(drawing.steps) },
    { name: texts.draw.cfg, value: String(drawing.cfg) },
    ...(drawing.finetuneId === undefined
      ? [{ name: texts.draw.scheduler, value: drawing.scheduler ?? texts.draw.schedulerOwn(null) }]
      : []),
    { name: texts.viewer.size, value: drawing.highResolution ? `${shape}, ${texts.viewer.high}` : shape },
    finetune
      ? { name: texts.viewer.finetune, value: titleOf(finetune) }
      : { name: texts.viewer.model, value: drawing.model ?? '' },
    ...(drawing.servedBy === null ? [] : [{ name: texts.viewer.drawnBy, value: drawing.servedBy }]),
    { name: texts.viewer.created, value: new Date(drawing.createdAt).toLocaleString() },
  ];
}
