import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ConfigJson } from '../architectures/config';
import { cures, ModelFolderError, UnsupportedConfigError } from '../errors';
import type { PartName } from '../weights/original-names';
import type { ReadFiles } from './family';

/** A configuration in the architecture's words, if the part has one. */
export function configOf<T>(
  { path, configs }: ReadFiles,
  part: PartName,
  read: (json: ConfigJson) => T,
): T | undefined {
  const json = configs.get(part);
  return json && blamingConfig(path, part, () => read(json));
}

/**
 * Tells that a part's configuration does not fit its weights, or is missing where a folder should have it.
 * @throws ModelFolderError; UnsupportedConfigError for weights that come without one
 */
export function blamingConfig<T>(path: string, part: PartName, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof UnsupportedConfigError)) throw error;
    const files = [part, `${part}_decoder`].map((folder) => join(path, folder, 'config.json'));
    const file = files.find((each) => existsSync(each));
    const reason = error.message.replace(/\.$/, '');
    if (file) throw new ModelFolderError(file, `describes another model: ${reason}`, cures.otherModel);
    if (!existsSync(join(path, part))) throw error;
    throw new ModelFolderError(files[0], `is missing, and what is usual does not fit: ${reason}`, cures.installAgain);
  }
}
