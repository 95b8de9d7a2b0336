import { change, draft, drawnBy, finetuneId, isSeedLocked, newSeed, type Settings, settingsOf, shown } from './draft';
import { type Drawing, drawingOfGeneration, drawingOfPrompt } from '../drawings/drawing';
import { showNew } from '../drawings/feed';
import { seedOf } from '../drawings/service-rules';
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
  const { prompt, aspect_ratio, steps, cfg, high_resolution, image, mask, strength, references } = wanted;
  const shared = {
    prompt,
    aspect_ratio,
    steps,
    cfg,
    high_resolution,
    negative_prompt: wanted.negative_prompt.trim() || null,
    ...(image && { image: image.url, strength, mask: mask?.url ?? null }),
    ...(references.length > 0 && { references: references.map(({ url }) => url) }),
  };
  const making = finetuneId === undefined ? drawGeneration(wanted, shared) : drawPrompts(finetuneId, wanted, shared);
  await forThisSession(making, (made) => {
    stageIds.value = made.map(({ id }) => id);
    showNew(made);
  });
}

async function drawGeneration(wanted: Settings, shared: NewPrompt): Promise<Drawing[]> {
  const { seed, num_generations, model, scheduler, prompt_weighting, finetunes, control } = wanted;
  const body = {
    ...shared,
    ...{ seed, num_generations, model, scheduler, prompt_weighting },
    finetunes: [...finetunes],
    control: control.map((each) => ({ ...each, image: each.image.url })),
  };
  return [drawingOfGeneration(await client().generations.create(body))];
}

/** A Prompt has one picture, so several pictures are several Prompts. */
async function drawPrompts(finetuneId: string, wanted: Settings, shared: NewPrompt): Promise<Drawing[]> {
  const bodies = Array.from({ length: wanted.num_generations }, (_, index) => ({
    ...shared,
    seed: seedOf(wanted, index),
  }));
  const made = await client().prompts.create(finetuneId, bodies);
  return made.map((prompt) =>
    drawingOfPrompt({ ...prompt, cfg: Number(prompt.cfg), seed: Number(prompt.seed) }, finetuneId),
  );
}
