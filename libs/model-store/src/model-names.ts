import { readdir, stat } from 'node:fs/promises';
import { ModelStoreError, systemCode } from './model-store-error';
import { join } from 'node:path';

/** Names that {@link isModelName} accepts, for a person. */
const modelNameRule = '1 to 64 lower-case letters, digits, ".", "_" or "-", beginning with a letter or a digit';
const modelNamePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** The folder of the upscalers, which is in the models folder but is not a model. */
export const upscalersFolder = 'upscalers';

/** Whether a model may have this name. It is a folder's name too, so it must not lead out of the models folder. */
export const isModelName = (name: string): boolean => modelNamePattern.test(name) && name !== upscalersFolder;

/** @throws ModelStoreError `InvalidModelName` saying what is accepted. */
export function checkModelName(name: string): string {
  if (isModelName(name)) return name;
  if (name === upscalersFolder)
    throw new ModelStoreError(
      'InvalidModelName',
      `"${name}" is the folder of the enlarging models: take another name.`,
    );
  throw new ModelStoreError('InvalidModelName', `"${name}" is no model name: ${modelNameRule}.`);
}

/** Content of a folder, sorted; nothing if there is no folder. */
export async function namesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  return names.sort();
}

/** Folders that are no models by intention: ours, and that of a file system's repair, at the root of a volume. */
const notMeant = [upscalersFolder, 'lost+found'];

/**
 * Which folders of the models folder are no models only because of their names, and what to do; undefined if there are
 * none. Hidden ones, which the store works in too, are not meant as models.
 */
export async function explainPassedOver(modelsDir: string): Promise<string | undefined> {
  const folders: string[] = [];
  for (const name of await namesIn(modelsDir)) {
    if (isModelName(name) || name.startsWith('.') || notMeant.includes(name)) continue;
    const found = await stat(join(modelsDir, name)).catch(() => undefined);
    if (found?.isDirectory()) folders.push(JSON.stringify(name));
  }
  if (folders.length === 0) return undefined;
  const subject = folders.length > 1 ? 'folders are' : 'folder is';
  return `In ${modelsDir} the ${subject} passed over whose name no model may have: ${folders.join(', ')}. A name is ${modelNameRule}. Rename it, or install it with "models add <folder> --as <name>".`;
}
