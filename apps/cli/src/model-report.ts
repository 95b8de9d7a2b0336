import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { OutOfMemoryError, StableDiffusionPipeline } from '@app/diffusion';
import { aspectRatios, fixedPixels, problemOfSize, ratiosFor } from '@app/domain';
import { type InstalledModel, problemOfOwnScheduler } from '@app/model-store';

/** What `GET /v1/models` shows as `problem`, as far as it can be told without the workers. */
export function modelProblem(model: InstalledModel): string | undefined {
  return model.problem ?? problemOfSize(model.fixed) ?? problemOfOwnScheduler(model);
}

/** An installed model as JSON: named as the API names it, with null for what it has not. */
export function modelFacts(model: InstalledModel) {
  const { fixed, schedulerProblems } = model;
  return {
    name: model.name,
    folder: model.folder,
    hash: model.hash ?? null,
    bytes: model.bytes,
    source: model.source ?? null,
    added_at: model.addedAt,
    requires_cuda: model.requiresCuda,
    fixed,
    defaults: model.defaults,
    scheduler_problems: { own: schedulerProblems.own ?? null, named: schedulerProblems.named },
    problem: modelProblem(model) ?? null,
  };
}

/** What is to be known of a model that was installed, a sentence each; nothing of most. */
export function notesOn(model: InstalledModel): string[] {
  const { folder, fixed } = model;
  const notes: string[] = [];
  const ratios = ratiosFor(fixed);
  const problem = problemOfSize(fixed);
  if (problem !== undefined) notes.push(problem);
  else if (ratios.length < aspectRatios.length)
    notes.push(
      `Only the aspect_ratio ${ratios.join(' or ')} can be drawn with it: its graphs take ${fixedPixels(fixed)} only.`,
    );
  if (fixed.chunks !== undefined)
    notes.push(`Prompts longer than ${fixed.chunks * 75} tokens are refused: its U-Net was exported for that length.`);
  if (!existsSync(join(folder, 'vae_decoder', 'config.json')))
    notes.push('Its VAE has no config.json, so latents are scaled by 0.18215, as with Stable Diffusion 1.x and 2.x.');
  const problemOfScheduler = problemOfOwnScheduler(model);
  if (problemOfScheduler !== undefined) notes.push(problemOfScheduler);
  return notes;
}

/**
 * Loads a model on this machine's processor, which calls each of its parts once, and lets it go.
 * @returns undefined, or why it could not be tried, in one sentence: that says nothing about the model
 * @throws ModelFolderError if it cannot be drawn with
 */
export async function tryModel(folder: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const pipeline = await StableDiffusionPipeline.load(folder, { device: 'cpu', spinUs: 0, signal });
    await pipeline.release();
    return undefined;
  } catch (error) {
    if (error instanceof OutOfMemoryError)
      return 'It was not tried, because this machine has too little memory for it.';
    throw error;
  }
}
