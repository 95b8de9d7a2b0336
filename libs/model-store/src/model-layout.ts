import type { Stats } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import {
  type Ability,
  type ControlFolder,
  cures,
  entriesBelow,
  findControlFolder,
  findSafetyFolder,
  isNoFile,
  isOfFlow,
  isSpecial,
  type ModelDefaults,
  type ModelFolder,
  type ModelKind,
  type Precision,
  precisionOf,
  problemsOfSchedulers,
  readModelFolder,
  safetyEdge,
  type SafetyFiles,
  type SchedulerProblems,
} from '@app/diffusion/files';
import { type AddedKind, besideParts, isSafePath, type ModelFile, selectModelFiles } from './select-files';
import { explainRefusal, ModelStoreError } from './model-store-error';

/** Facts about a model, from its files. */
export interface ModelFacts {
  family: string;
  /** Its name in sentences. */
  familyTitle: string;
  /**
   * Its source; a ControlNet guides models of its family, a safety checker looks at pictures, and neither draws anything
   * by itself.
   */
  kind: ModelKind | 'control' | 'safety';
  /** Edge in pixels of the square pictures that it was trained on; of a ControlNet, that its family was. */
  nativeSize: number;
  /** Pixels of which each edge of its pictures is a multiple; a ControlNet draws none. */
  sizeMultiple?: number;
  /** Pixels of its pictures at most. */
  maxPixels?: number;
  /** diffusers' class of its own scheduler; a ControlNet has none. */
  scheduler?: string;
  /** How the weights of what predicts are stored. */
  precision: Precision;
  /** Whether it can read a picture, to draw from or to learn; some exports can only make one. */
  hasEncoder: boolean;
  /** What it cannot do, each with a sentence that says so. */
  cannot?: Readonly<Partial<Record<Ability, string>>>;
  /** Whether it draws by flow matching. */
  isOfFlow?: boolean;
  /** Requests for schedulers without a problem can be drawn. */
  schedulerProblems: SchedulerProblems;
  /** Settings that it is drawn with where a request does not say. */
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
export async function findFilesIn(folder: string, kind?: AddedKind): Promise<FoundFile[]> {
  const entries = await explainRefusal(folder, () => entriesBelow(folder));
  const there = new Map(
    entries.flatMap(({ path, found }) => (found && !found.isDirectory() ? [[path, found] as const] : [])),
  );
  const files = selectModelFiles([...there.keys()], 'asRead', kind).map((file) => ({
    ...file,
    found: there.get(file.from)!,
  }));
  const wrong = files.filter(({ found }) => isSpecial(found));
  if (wrong.length === 0) return files;
  const sentences = wrong.map(({ from }) => `${from} ${isNoFile}. ${cures.installAgain}`);
  throw new ModelStoreError('InvalidModel', sentences.join('\n'));
}

/** Counts the changes of what {@link readLayout} tells and refuses: folders which passed before are then read again. */
export const layoutRules = 13;

/**
 * Reads what a model is, of its weights only the headers.
 * @throws ModelStoreError `InvalidModel`, which names each file at fault and the reason, and says what to do.
 */
export async function readLayout(folder: string): Promise<ModelLayout> {
  const found = await findFilesIn(folder);
  return explainRefusal(folder, async () => {
    const control = await findControlFolder(folder);
    const model = control ?? (await findSafetyFolder(folder)) ?? (await readModelFolder(folder));
    const parts = 'kind' in model ? [...model.tensors.values()] : [model.tensors];
    const tensors = parts.flatMap((part) => [...part.values()]);
    const weights = new Set(tensors.map(({ file }) => relative(folder, file).replaceAll(sep, '/')));
    const outside = [...weights].find((path) => !isSafePath(path));
    if (outside !== undefined)
      throw new ModelStoreError('InvalidModel', `${outside} lies outside of the folder. ${cures.installAgain}`);
    const isNeeded = (path: string): boolean =>
      !besideParts.includes(path) && (/\.(json|txt|onnx)$/.test(path) || weights.has(path));
    const files = new Set([...found.map(({ from }) => from).filter(isNeeded), ...weights]);
    return { files: [...files].sort(), facts: factsOf(model) };
  });
}

function factsOf(model: ModelFolder | ControlFolder | SafetyFiles): ModelFacts {
  if ('kind' in model) return factsOfModel(model);
  const { family = { name: 'safety', title: 'safety checker', nativeSize: safetyEdge } } = model as ControlFolder;
  return {
    family: family.name,
    familyTitle: family.title,
    kind: 'family' in model ? 'control' : 'safety',
    nativeSize: family.nativeSize,
    precision: precisionOf(model.tensors),
    hasEncoder: false,
    schedulerProblems: { named: {} },
    defaults: {},
  };
}

function factsOfModel(model: ModelFolder): ModelFacts {
  const { family, kind, nativeSize, sizeMultiple, maxPixels, schedulerJson, defaults, cannot } = model;
  const schedulerProblems = problemsOfSchedulers(model);
  const precision = precisionOf(model.denoiser.tensors);
  return {
    ...{ family: family.name, familyTitle: family.title, kind, nativeSize, precision, schedulerProblems },
    ...{ defaults, cannot, sizeMultiple, maxPixels },
    hasEncoder: model.autoencoder.hasEncoder,
    isOfFlow: isOfFlow(schedulerJson),
    scheduler: String(schedulerJson._class_name),
  };
}

/**
 * Checks files before gigabytes of them are copied, under the names that they will have: by way of links to them. Where
 * no links can be made it is left to the check of the copy.
 * @param files absolute path of each, by its path in the model
 * @throws ModelStoreError `InvalidModel`
 */
export async function checkSource(files: ReadonlyMap<string, string>, kind: AddedKind): Promise<void> {
  const links = await mkdtemp(join(tmpdir(), 'darkroom-model-')).catch(() => undefined);
  if (links === undefined) return;
  try {
    if (await areLinked(files, links)) await checkKind(links, kind);
  } finally {
    await rm(links, { recursive: true, force: true });
  }
}

/**
 * Reads what a folder is, and refuses something else than what it was said to be.
 * @throws ModelStoreError `InvalidModel`
 */
export async function checkKind(folder: string, kind: AddedKind): Promise<ModelLayout> {
  const layout = await readLayout(folder);
  const found = layout.facts.kind;
  if (found === kind || (kind === 'model' && drawsPictures(found))) return layout;
  const weights = layout.files.find((path) => path.endsWith('.safetensors')) ?? layout.files[0];
  if (found === 'control') throw controlNetRefusal(weights);
  const said = kind === 'control' ? 'ControlNet' : 'safety checker';
  throw new ModelStoreError(
    'InvalidModel',
    found === 'safety'
      ? `${weights} is of a safety checker, which looks at pictures and draws none. ${cures.asSafety}`
      : `${weights} is of a model to draw with, and no ${said}. ${cures.asModel}`,
  );
}

/** Whether a model of this kind draws by itself. */
export const drawsPictures = (kind: ModelFacts['kind'] | null | undefined): boolean =>
  kind !== 'control' && kind !== 'safety';

/** @param file by which that is known */
export const controlNetRefusal = (file: string): ModelStoreError =>
  new ModelStoreError(
    'InvalidModel',
    `${file} is a ControlNet, which guides a model and draws nothing by itself. ${cures.asControl}`,
  );

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
