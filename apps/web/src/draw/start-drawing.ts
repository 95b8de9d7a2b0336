import type { Draft } from './draft';
import { change, draft, drawnBy, finetuneId, newSeed } from './draft';
import type { Drawing } from '../drawings/drawing';
import { drawingOfGeneration, drawingOfPrompt } from '../drawings/drawing';
import { showNew } from '../drawings/feed';
import { seedOf } from '../drawings/service-rules';
import { stageIds } from '../drawings/store';
import type { NewGeneration, NewPrompt } from '../service/client';
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
  return [drawingOfGeneration(await client().generations.create(generationBody(wanted)))];
}

/** A Prompt has one picture, so several are several Prompts. */
async function drawPrompts(finetuneId: string, wanted: Draft): Promise<Drawing[]> {
  const bodies = Array.from({ length: wanted.count }, (_, index) => promptBody(wanted, index));
  const made = await client().prompts.create(finetuneId, bodies);
  return made.map((prompt) =>
    drawingOfPrompt({ ...prompt, cfg: Number(prompt.cfg), seed: Number(prompt.seed) }, finetuneId),
  );
}

function generationBody(wanted: Draft): NewGeneration {
  return {
    ...sharedFields(wanted),
    seed: wanted.seed,
    ...(wanted.count > 1 && { num_generations: wanted.count }),
    ...(wanted.model !== undefined && { model: wanted.model }),
    ...(wanted.scheduler && { scheduler: wanted.scheduler }),
    ...(wanted.promptWeighting && { prompt_weighting: true }),
  };
}

function promptBody(wanted: Draft, index: number): NewPrompt {
  return { ...sharedFields(wanted), seed: seedOf(wanted, index) };
}

function sharedFields({ prompt, negativePrompt, aspectRatio, cfg, steps, highResolution }: Draft) {
  return {
    prompt,
    aspect_ratio: aspectRatio,
    ...(negativePrompt.trim() !== '' && { negative_prompt: negativePrompt }),
    ...(cfg !== undefined && { cfg }),
    ...(steps !== undefined && { steps }),
    ...(highResolution && { high_resolution: true }),
  };
}
