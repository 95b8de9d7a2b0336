import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from './model-store-error';

/** A file as it was when it was last read. It is not read again while size and time of change stay the same. */
export interface SeenFile {
  size: number;
  mtimeMs: number;
  /** Absent of a file that the model does not depend on. */
  sha256?: string;
}

/** What a folder held when it was last looked at, by path. */
export interface SeenFolder {
  files: Record<string, SeenFile>;
  /** Operators of its graphs that only CUDA has. */
  cudaOnly: string[];
}

/** What the store remembers of a model, in `.<name>.darkroom-model.json` beside its folder. */
export interface ModelManifest {
  format: 1;
  /** Set by `add`: where the model came from and what every file must be. Absent for a folder put there by hand. */
  installed?: { source: string; addedAt: string; files: Record<string, string> };
  seen?: SeenFolder;
}

export const manifestPath = (modelsDir: string, name: string): string =>
  join(modelsDir, `.${name}.darkroom-model.json`);

/** The manifest of a model; an empty one if there is none or it cannot be read, as everything in it can be found again. */
export async function readManifest(modelsDir: string, name: string): Promise<ModelManifest> {
  try {
    const value = JSON.parse(await readFile(manifestPath(modelsDir, name), 'utf8')) as ModelManifest;
    if (value?.format === 1) return value;
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' && !(error instanceof SyntaxError)) throw error;
  }
  return { format: 1 };
}

/** Stores the manifest, whole or not at all. @returns false where the folder cannot be written. */
export async function writeManifest(modelsDir: string, name: string, manifest: ModelManifest): Promise<boolean> {
  const path = manifestPath(modelsDir, name);
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(draft, `${JSON.stringify(manifest, undefined, 1)}\n`);
    await rename(draft, path);
    return true;
  } catch (error) {
    await rm(draft, { force: true });
    if (['EACCES', 'EPERM', 'EROFS', 'ENOSPC'].includes(systemCode(error) ?? '')) return false;
    throw error;
  }
}
