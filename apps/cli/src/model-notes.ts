import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sizeOf } from '@app/domain';
import type { InstalledModel } from '@app/model-store';
import { workingSchedulers } from '@app/model-store';

/** What is to be known of a model that was installed, a sentence each; nothing of most. */
export function notesOn(model: InstalledModel): string[] {
  const { folder, fixed, defaults, schedulerProblems } = model;
  const notes: string[] = [];
  const sizes = Object.values(sizeOf);
  const fits = ({ width, height }: { width: number; height: number }): boolean =>
    width === (fixed.width ?? width) && height === (fixed.height ?? height);
  if (!sizes.some(fits)) {
    const own = `${fixed.width ?? 'any'} x ${fixed.height ?? 'any'}`;
    const ours = sizes.map(({ width, height }) => `${width} x ${height}`).join(', ');
    notes.push(
      `No request can be drawn with it: its graphs take ${own} pixels only, and requests are for ${ours}. Export it without a fixed size.`,
    );
  }
  if (fixed.chunks !== undefined)
    notes.push(`Prompts longer than ${fixed.chunks * 75} tokens are refused: its U-Net was exported for that length.`);
  if (!existsSync(join(folder, 'vae_decoder', 'config.json')))
    notes.push('Its VAE has no config.json, so latents are scaled by 0.18215, as with Stable Diffusion 1.x and 2.x.');
  const { own } = schedulerProblems;
  if (own !== undefined && defaults.scheduler === undefined)
    notes.push(
      `Its own scheduler cannot draw: ${own} Requests and Prompts that name none are refused, until "scheduler" in its darkroom.json names ${workingSchedulers(model)}.`,
    );
  return notes;
}
