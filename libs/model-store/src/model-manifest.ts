import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FixedShape } from './model-layout';
import { systemCode } from './model-store-error';

/** A file as it was last read. It is not read again while size and modification time stay the same. */
export interface SeenFile {
  size: number;
  mtimeMs: number;
  /** Absent for a file that the model does not depend on. */
  sha256?: string;
}

/** The content of a folder as last read, by path. */
export interface SeenFolder {
  files: Record<string, SeenFile>;
  /** Operators of its graphs that only CUDA supports. */
  cudaOnly: string[];
  fixed?: FixedShape;
  /** The `layoutRules` that it passed; absent in manifests of earlier versions. */
  rules?: number;
}

/** The stored knowledge about a model, in `.<name>.darkroom-model.json` beside its folder. */
export interface ModelManifest {
  format: 1;
  /**
   * Set by `add`: the model's source and the expected hash of every file. Absent for a folder that was copied by hand.
   */
  installed?: { source: string; addedAt: string; files: Record<string, string> };
  seen?: SeenFolder;
}

export const manifestPath = (modelsDir: string, name: string): string =>
  join(modelsDir, `.${name}.darkroom-model.json`);

/**
 * The manifest of a model; an empty one if there is none or it cannot be read, since all of it can be computed again.
 */
export async function readManifest(modelsDir: string, name: string): Promise<ModelManifest> {
  try {
    const path = manifestPath(modelsDir, name);
    // Opening a pipe waits for a writer that may never come.
    if (!(await stat(path)).isFile()) return { format: 1 };
    const value = JSON.parse(await readFile(path, 'utf8')) as ModelManifest;
    if (value?.format === 1) return value;
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' && !(error instanceof SyntaxError)) throw error;
  }
  return { format: 1 };
}

/** Stores the manifest atomically. @returns false if the folder is not writable. */
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
