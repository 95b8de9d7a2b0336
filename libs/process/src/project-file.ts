import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The text of a file in the project's root, found both from the sources and from `dist`. */
export function projectFile(name: string, folder = __dirname): string {
  try {
    return readFileSync(join(folder, name), 'utf8');
  } catch (error) {
    if (folder === join(folder, '..')) throw error;
    return projectFile(name, join(folder, '..'));
  }
}

/** Of the service, as its document and its pictures tell. */
export const serviceVersion = (JSON.parse(projectFile('package.json')) as { version: string }).version;
