import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { entriesBelow } from '@app/diffusion/files';
import { knownFaults } from '@app/process';
import { contentHash, hashFile } from './content-hash';
import { findFilesIn, layoutRules, type ModelFacts, type ModelLayout, readLayout } from './model-layout';
import { ModelStoreError, systemCode } from './model-store-error';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';

interface FolderContent {
  /** Content hash, sha256 in hexadecimal. */
  hash: string;
  bytes: number;
  facts: ModelFacts;
  /** Relative path -> sha256 of every file that pictures depend on. */
  files: ReadonlyMap<string, string>;
}

/**
 * Knows the content of the model folders without reading gigabytes each time. Results are kept in the manifest, or in
 * memory if the models folder is read-only; a file is read again when its size or modification time differs. Refusals
 * are kept in memory.
 */
export class ModelCatalog {
  private readonly memory = new Map<string, ModelManifest>();
  private readonly pending = new Map<string, Promise<FolderContent>>();
  private readonly refusals = knownFaults<ModelStoreError>();

  constructor(private readonly modelsDir: string) {}

  /** @throws ModelStoreError `InvalidModel` when the folder is not a loadable model */
  async content(name: string): Promise<FolderContent> {
    const now = await this.stats(name);
    // A folder that was changed while it is being read is read again.
    const state = JSON.stringify([name, now]);
    const running = this.pending.get(state) ?? this.read(name, now).finally(() => this.pending.delete(state));
    this.pending.set(state, running);
    return running;
  }

  async manifest(name: string): Promise<ModelManifest> {
    return this.memory.get(name) ?? (await readManifest(this.modelsDir, name));
  }

  /**
   * Stores a folder's content, with digests that were just computed, and its source if known.
   * @param files as they were before that; as they are now where nothing else has the folder
   */
  async record(
    name: string,
    digests: ReadonlyMap<string, string>,
    { facts }: Pick<ModelLayout, 'facts'>,
    installed?: ModelManifest['installed'],
    files?: Record<string, SeenFile>,
  ): Promise<FolderContent> {
    files ??= await this.stats(name);
    for (const [path, file] of Object.entries(files)) {
      const sha256 = digests.get(path);
      if (sha256) file.sha256 = sha256;
    }
    const seen = { files, facts, rules: layoutRules };
    const manifest: ModelManifest = { format: 1, ...(installed && { installed }), seen };
    if (await writeManifest(this.modelsDir, name, manifest)) this.memory.delete(name);
    else this.memory.set(name, manifest);
    return contentOf(seen);
  }

  forget(name: string): void {
    this.memory.delete(name);
  }

  private async read(name: string, now: Record<string, SeenFile>): Promise<FolderContent> {
    const manifest = await this.manifest(name);
    const before = manifest.seen?.files ?? {};
    const unchanged = (path: string): boolean =>
      before[path]?.size === now[path].size && before[path]?.mtimeMs === now[path].mtimeMs;
    if (manifest.seen?.rules === layoutRules && sameKeys(before, now) && Object.keys(now).every(unchanged))
      return contentOf(manifest.seen);
    const folder = join(this.modelsDir, name);
    const layout = await this.layout(folder);
    const digests = new Map<string, string>();
    for (const path of layout.files)
      digests.set(path, (unchanged(path) && before[path].sha256) || (await hashFile(join(folder, path))));
    return this.record(name, digests, layout, manifest.installed, now);
  }

  /** Every caller may name a model, and to find out what is wrong with one blocks the process for 0.1 seconds. */
  private async layout(folder: string): Promise<ModelLayout> {
    const state = await stateOf(folder);
    const known = this.refusals.get(state);
    if (known) throw known;
    return readLayout(folder).catch((error: unknown) => {
      if (error instanceof ModelStoreError) this.refusals.set(state, error);
      throw error;
    });
  }

  private async stats(name: string): Promise<Record<string, SeenFile>> {
    const files = await findFilesIn(join(this.modelsDir, name));
    // Whole milliseconds: tools that restore a file's time rarely keep more.
    return Object.fromEntries(
      files.map(({ from, found: { size, mtimeMs } }) => [from, { size, mtimeMs: Math.round(mtimeMs) }]),
    );
  }
}

/** Differs after any change below a folder: of names, contents or, which a file's other time tells, permissions. */
async function stateOf(folder: string): Promise<string> {
  const entries = await entriesBelow(folder);
  const states = entries.map(({ path, found }) => [path, found?.size, found?.mtimeMs, found?.ctimeMs]);
  return createHash('sha256')
    .update(JSON.stringify([folder, states]))
    .digest('hex');
}

function contentOf({ files, facts }: SeenFolder): FolderContent {
  const relevant = Object.entries(files).filter(([, file]) => file.sha256 !== undefined);
  const digests = new Map(relevant.map(([path, file]) => [path, file.sha256!]));
  return {
    hash: contentHash(digests),
    bytes: relevant.reduce((sum, [, file]) => sum + file.size, 0),
    facts,
    files: digests,
  };
}

function sameKeys(a: object, b: object): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b);
}

/** A file as it was last read. It is not read again while size and modification time stay the same. */
interface SeenFile {
  size: number;
  mtimeMs: number;
  /** Absent for a file that the model does not depend on. */
  sha256?: string;
}

/** The content of a folder as last read, by path. */
interface SeenFolder {
  files: Record<string, SeenFile>;
  facts: ModelFacts;
  /** The `layoutRules` that it passed. */
  rules: number;
}

/** The stored knowledge about a model, in `.<name>.darkroom-model.json` beside its folder. */
interface ModelManifest {
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
async function readManifest(modelsDir: string, name: string): Promise<ModelManifest> {
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
async function writeManifest(modelsDir: string, name: string, manifest: ModelManifest): Promise<boolean> {
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
