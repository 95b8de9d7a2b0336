import { change, draft, drawnBy, finetuneId, isSeedLocked, newSeed, type Settings, settingsOf, shown } from './draft';
import { type Drawing, drawingOfGeneration, drawingOfPrompt } from '../drawings/drawing';
import { showNew } from '../drawings/feed';
import { stageIds } from '../drawings/store';
import type { NewPrompt } from '../service/client';
import { client, forThisSession } from '../session/session';

/**
 * Draws what the form shows, with a model even if nobody chose one, or with the stand-in of one that is missing.
 * @throws DarkroomError
 */
export async function startDrawing(): Promise<void> {
  if (!isSeedLocked.value) change({ seed: newSeed() });
  await draw({ ...shown.value, model: drawnBy.value?.name ?? draft.value.model }, finetuneId.value);
}

/** Draws the same with another seed. @throws DarkroomError */
export const vary = (drawing: Drawing): Promise<void> =>
  draw({ ...settingsOf(drawing), seed: newSeed() }, drawing.finetuneId);

async function draw(wanted: Settings, finetuneId: string | undefined): Promise<void> {
  const { prompt, steps, cfg, high_resolution, image, mask, outpaint, strength, references } = wanted;
  const { seed, num_generations, scheduler, prompt_weighting } = wanted;
  const body = {
    ...{ prompt, steps, cfg, high_resolution, seed, num_generations, scheduler, prompt_weighting },
    ...shapeOf(wanted),
    negative_prompt: wanted.negative_prompt.trim() || null,
    ...(image && { image: image.url, strength, mask: mask?.url ?? null, ...(outpaint && { outpaint }) }),
    ...(references.length > 0 && { references: references.map(({ url }) => url) }),
    control: wanted.control.map((each) => ({ ...each, image: each.image.url })),
  };
  const making = finetuneId === undefined ? drawGeneration(wanted, body) : drawPrompt(finetuneId, body);
  await forThisSession(making, (made) => {
    stageIds.value = [made.id];
    showNew([made]);
  });
}

function shapeOf({ aspect_ratio, width, height }: Settings) {
  return aspect_ratio === null ? { width, height } : { aspect_ratio };
}

async function drawGeneration({ model, finetunes }: Settings, body: NewPrompt): Promise<Drawing> {
  return drawingOfGeneration(await client().generations.create({ ...body, model, finetunes: [...finetunes] }));
}

async function drawPrompt(finetuneId: string, body: NewPrompt): Promise<Drawing> {
  const { prompts } = client();
  const [{ id }] = await prompts.create(finetuneId, [body]);
  const told = await prompts.status(finetuneId, id);
  return drawingOfPrompt(await prompts.get(finetuneId, id), told, finetuneId);
}
