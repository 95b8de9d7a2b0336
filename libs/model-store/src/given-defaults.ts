import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelDefaults } from '@app/diffusion/files';
import { defaultsFile, problemOfDefaults, readModelDefaults } from '@app/diffusion/files';
import { ModelStoreError } from './model-store-error';

/** @throws ModelStoreError `InvalidDefaults` naming the value and what is accepted */
export function checkDefaults(defaults: ModelDefaults | undefined): void {
  const problem = defaults && problemOfDefaults({ ...defaults });
  if (problem !== undefined) throw new ModelStoreError('InvalidDefaults', `What was given ${problem}.`);
}

/** Writes the given defaults into the folder's `darkroom.json`, over those that it has. */
export async function writeDefaults(folder: string, given: ModelDefaults): Promise<void> {
  const defaults = { ...(await readModelDefaults(folder)), ...given };
  await writeFile(join(folder, defaultsFile), `${JSON.stringify(defaults, undefined, 2)}\n`);
}
