import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isModelName, modelNameRule, upscalersFolder } from './model-files';
import { namesIn } from './names-in';

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
