import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { aspectRatios, fixedPixels, problemOfSize, ratiosFor } from '@app/domain';
import type { InstalledModel } from '@app/model-store';
import { problemOfOwnScheduler } from '@app/model-store';

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
