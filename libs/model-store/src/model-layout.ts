import type { Stats } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import {
  cures,
  entriesBelow,
  type FamilyName,
  isNoFile,
  isSpecial,
  type ModelDefaults,
  type ModelKind,
  problemsOfSchedulers,
  readModelFolder,
  type SchedulerProblems,
} from '@app/diffusion/files';
import { besideParts, isSafePath, type ModelFile, selectModelFiles } from './model-files';
import { explainRefusal, ModelStoreError } from './model-store-error';

/** What a model is, from its files. */
export interface ModelFacts {
  family: FamilyName;
  kind: ModelKind;
  /** Edge in pixels of the square pictures that it was trained on. */
  nativeSize: number;
  /** diffusers' class of its own scheduler. */
  scheduler: string;
  /** Requests for schedulers without a problem can be drawn. */
  schedulerProblems: SchedulerProblems;
  /** What it is drawn with where a request does not say. */
  defaults: ModelDefaults;
}

/** The content of a model folder, determined without loading its weights. */
export interface ModelLayout {
  /** The files that pictures depend on, relative to the folder, sorted. Other files do not matter. */
  files: string[];
  facts: ModelFacts;
}

/**
 * Every file below a folder, relative, with forward slashes; symbolic links are followed.
 * @throws ModelStoreError `InvalidModel` if there are far more than a model has
 */
export async function listFolder(folder: string): Promise<string[]> {
  const entries = await explainRefusal(folder, () => entriesBelow(folder));
  return entries.filter(({ found }) => found?.isFile()).map(({ path }) => path);
}

/** A file of a model, and what its folder says of it. */
export interface FoundFile extends ModelFile {
  found: Stats;
}

/**
 * The files of a model that a folder has.
 * @throws ModelStoreError `InvalidModel` also for a pipe, a socket or a device in place of one, which nobody may open
 */
export async function findFilesIn(folder: string): Promise<FoundFile[]> {
  const entries = await explainRefusal(folder, () => entriesBelow(folder));
  const there = new Map(
    entries.flatMap(({ path, found }) => (found && !found.isDirectory() ? [[path, found] as const] : [])),
  );
  const files = selectModelFiles([...there.keys()]).map((file) => ({ ...file, found: there.get(file.from)! }));
  const wrong = files.filter(({ found }) => isSpecial(found));
  if (wrong.length === 0) return files;
  const sentences = wrong.map(({ from }) => `${from} ${isNoFile}. ${cures.installAgain}`);
  throw new ModelStoreError('InvalidModel', sentences.join('\n'));
}

/** Counts the changes of what {@link readLayout} tells and refuses, so that folders which passed before are read again. */
export const layoutRules = 5;

/**
 * Reads what a model is, of its weights only the headers.
 * @throws ModelStoreError `InvalidModel`, which names each file at fault and the reason, and says what to do.
 */
export async function readLayout(folder: string): Promise<ModelLayout> {
  const found = await findFilesIn(folder);
  return explainRefusal(folder, async () => {
    const model = await readModelFolder(folder);
    const tensors = [...model.tensors.values()].flatMap((part) => [...part.values()]);
    const weights = new Set(tensors.map(({ file }) => relative(folder, file).replaceAll(sep, '/')));
    const outside = [...weights].find((path) => !isSafePath(path));
    if (outside !== undefined)
      throw new ModelStoreError('InvalidModel', `${outside} lies outside of the folder. ${cures.installAgain}`);
    const isNeeded = (path: string): boolean =>
      !besideParts.includes(path) && (/\.(json|txt|onnx)$/.test(path) || weights.has(path));
    const files = new Set([...found.map(({ from }) => from).filter(isNeeded), ...weights]);
    const { family, kind, nativeSize, schedulerJson, defaults } = model;
    const schedulerProblems = problemsOfSchedulers(model);
    const scheduler = String(schedulerJson._class_name);
    return {
      files: [...files].sort(),
      facts: { family: family.name, kind, nativeSize, scheduler, schedulerProblems, defaults },
    };
  });
}

/**
 * Checks files before gigabytes of them are copied, under the names that they will have: by way of links to them. Where
 * no links can be made it is left to the check of the copy.
 * @param files absolute path of each, by its path in the model
 * @throws ModelStoreError `InvalidModel`
 */
export async function checkSource(files: ReadonlyMap<string, string>): Promise<void> {
  const links = await mkdtemp(join(tmpdir(), 'darkroom-model-')).catch(() => undefined);
  if (links === undefined) return;
  try {
    if (await areLinked(files, links)) await readLayout(links);
  } finally {
    await rm(links, { recursive: true, force: true });
  }
}

async function areLinked(files: ReadonlyMap<string, string>, links: string): Promise<boolean> {
  try {
    for (const [to, from] of files) {
      await mkdir(dirname(join(links, to)), { recursive: true });
      await symlink(from, join(links, to));
    }
    return true;
  } catch {
    return false;
  }
}
