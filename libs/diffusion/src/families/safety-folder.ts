import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { clipVisionConfigOf, safetyCheckerModel } from '../architectures/clip-vision-model';
import { cures, ModelFolderError, UnsupportedConfigError } from '../errors';
import type { SafetyFiles } from '../safety/safety-checker';
import { misfit } from '../sessions/part-graph';
import { readJsonFile } from '../weights/folder-files';
import { WeightsFileError } from '../weights/named-tensor';
import { readPart } from '../weights/safetensors-file';
import { denoiserFolders, refusing } from './model-parts';

/** diffusers' folder of a safety checker, below the models that were released with one. */
export const safetyFolder = 'safety_checker';

/** The safety checker of a folder that has nothing else; undefined if there is none. @throws ModelFolderError */
export async function findSafetyFolder(path: string): Promise<SafetyFiles | undefined> {
  const names = await readdir(path);
  const isOfModel = (name: string): boolean => denoiserFolders().includes(name) || name.endsWith('.safetensors');
  return names.includes(safetyFolder) && !names.some(isOfModel) ? readSafetyFolder(path) : undefined;
}

/**
 * Reads a safety checker of Stable Diffusion, of its weights only the headers.
 * @param path of the folder around `safety_checker`
 * @throws ModelFolderError naming the file that is missing or wrong
 */
export async function readSafetyFolder(path: string): Promise<SafetyFiles> {
  const at = join(path, safetyFolder);
  const configFile = join(at, 'config.json');
  const json = await readJsonFile(configFile);
  const tensors = await refusing(at, () => readPart(at));
  const file = tensors.values().next().value?.file ?? at;
  if (!tensors.has('special_care_embeds'))
    throw new ModelFolderError(file, 'is no safety checker of Stable Diffusion', cures.otherSafety);
  try {
    const config = clipVisionConfigOf(json);
    safetyCheckerModel({ tensors }, config);
    return { part: safetyFolder, tensors, file, config };
  } catch (error) {
    if (error instanceof WeightsFileError) throw misfit(file, error);
    if (!(error instanceof UnsupportedConfigError)) throw error;
    const reason = `describes another model: ${error.message.replace(/\.$/, '')}`;
    throw new ModelFolderError(configFile, reason, cures.otherSafety);
  }
}
