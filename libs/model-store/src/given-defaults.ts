import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelDefaults } from '@app/diffusion/files';
import { defaultsFile, problemsOfDefaults, readModelDefaults } from '@app/diffusion/files';
import { ModelStoreError } from './model-store-error';

/** @throws ModelStoreError `InvalidDefaults` naming each value and what is accepted */
export function checkDefaults(defaults: ModelDefaults | undefined): void {
  const problems = problemsOfDefaults({ ...defaults });
  if (problems.length > 0)
    throw new ModelStoreError('InvalidDefaults', `What was given ${problems.join(', and it ')}.`);
}

/** Writes the given defaults into the folder's `darkroom.json`, over those that it has. */
export async function writeDefaults(folder: string, given: ModelDefaults): Promise<void> {
  const defaults = { ...(await readModelDefaults(folder)), ...given };
  await writeFile(join(folder, defaultsFile), `${JSON.stringify(defaults, undefined, 2)}\n`);
}
