import { join } from 'node:path';
import { type ConfigJson, UnsupportedConfigError } from '../architectures/config';
import { cures, ModelFolderError } from '../errors';
import type { PartName } from '../weights/original-names';
import type { ReadFiles } from './family';

/** A configuration in the architecture's words, if the part has one. */
export function configOf<T>(
  { path, configs }: ReadFiles,
  part: PartName,
  read: (json: ConfigJson) => T,
): T | undefined {
  const json = configs.get(part);
  if (!json) return undefined;
  try {
    return read(json);
  } catch (error) {
    if (!(error instanceof UnsupportedConfigError)) throw error;
    const file = join(path, part, 'config.json');
    throw new ModelFolderError(file, `describes another model: ${error.message.replace(/\.$/, '')}`, cures.otherModel);
  }
}
