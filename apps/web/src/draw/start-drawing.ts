import type { Draft } from './draft';
import { change, draft, drawnBy, finetuneId, newSeed } from './draft';
import type { Drawing } from '../drawings/drawing';
import { drawingOfGeneration, drawingOfPrompt } from '../drawings/drawing';
import { showNew } from '../drawings/feed';
import { seedOf } from '../drawings/service-rules';
import { stageIds } from '../drawings/store';
import type { NewGeneration } from '../service/client';
import { client, forThisSession } from '../session/session';

/**
 * Draws what the form shows: also a model that nobody has chosen, or that is there in place of one that is not.
 * @throws DarkroomError
 */
export async function startDrawing(): Promise<void> {
  if (!draft.value.isSeedLocked) change({ seed: newSeed() });
  await draw({ ...draft.value, finetuneId: finetuneId.value, model: drawnBy.value?.name ?? draft.value.model });
}

/** Draws something that was drawn before with another seed. @throws DarkroomError */
export async function vary(drawing: Drawing): Promise<void> {
  const { prompt, aspectRatio, cfg, steps, highResolution, promptWeighting, finetuneId, model, count } = drawing;
  await draw({
    ...{ prompt, aspectRatio, cfg, steps, highResolution, promptWeighting, finetuneId, model, count },
    negativePrompt: drawing.negativePrompt ?? '',
    seed: newSeed(),
    isSeedLocked: true,
    ...(drawing.scheduler !== null && { scheduler: drawing.scheduler as Draft['scheduler'] }),
  });
}

async function draw(wanted: Draft): Promise<void> {
  const { finetuneId } = wanted;
  const making = finetuneId === undefined ? drawGeneration(wanted) : drawPrompts(finetuneId, wanted);
  await forThisSession(making, (made) => {
    stageIds.value = made.map(({ id }) => id);
    showNew(made);
  });
}

async function drawGeneration(wanted: Draft): Promise<Drawing[]> {
  const body: NewGeneration = {
    ...sharedFields(wanted),
    seed: wanted.seed,
    num_generations: wanted.count > 1 ? wanted.count : undefined,
    model: wanted.model,
    scheduler: wanted.scheduler,
    prompt_weighting: wanted.promptWeighting || undefined,
  };
  return [drawingOfGeneration(await client().generations.create(body))];
}

/** A Prompt has one picture, so several are several Prompts. */
async function drawPrompts(finetuneId: string, wanted: Draft): Promise<Drawing[]> {
  const shared = sharedFields(wanted);
  const bodies = Array.from({ length: wanted.count }, (_, index) => ({ ...shared, seed: seedOf(wanted, index) }));
  const made = await client().prompts.create(finetuneId, bodies);
  return made.map((prompt) =>
    drawingOfPrompt({ ...prompt, cfg: Number(prompt.cfg), seed: Number(prompt.seed) }, finetuneId),
  );
}

/** What is undefined is not sent. */
function sharedFields({ prompt, negativePrompt, aspectRatio, cfg, steps, highResolution }: Draft) {
  return {
    prompt,
    aspect_ratio: aspectRatio,
    negative_prompt: negativePrompt.trim() === '' ? undefined : negativePrompt,
    cfg,
    steps,
    high_resolution: highResolution || undefined,
  };
}
