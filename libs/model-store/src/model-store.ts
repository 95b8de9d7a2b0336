import { HubClient, type HubOptions } from './hub/hub-client';
import type { ModelProgress } from './model-progress';
import { type ModelSource, parseModelSource } from './model-source';
import {
  type ModelDefaults,
  problemsOfSchedulers,
  readModelDefaults,
  type SchedulerProblems,
} from '@app/diffusion/files';
import { lstat, mkdir, rename, rm, stat, unlink } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { checkSource, type FixedShape, listFolder, readLayout } from './model-layout';
import { copyModel } from './copy-model';
import { explainDiskErrors, explainRefusal, ModelStoreError, withFaults } from './model-store-error';
import { checkDefaults, writeDefaults } from './model-defaults';
import { downloadModel } from './hub/hub-download';
import { withModelLock } from './lock-model';
import { manifestPath, ModelCatalog } from './model-catalog';
import { besideParts } from './model-files';
import { checkModelName, explainPassedOver, isModelName, namesIn } from './model-names';
import { verifyModel, type VerifyReport } from './verify-model';

/** A folder of the models folder. */
export interface InstalledModel {
  name: string;
  /** Absolute path. */
  folder: string;
  /** Content hash, sha256 in hexadecimal; undefined if `problem` is set. */
  hash: string | undefined;
  /** Size of the files that pictures depend on. */
  bytes: number;
  /** `owner/name@commit` or the folder it was copied from; undefined for a folder that was put there by hand. */
  source: string | undefined;
  /** ISO 8601; the folder's own time if it was put there by hand. */
  addedAt: string;
  /** Whether its graphs have operators without a CPU kernel. */
  requiresCuda: boolean;
  fixed: FixedShape;
  /** What it is drawn with where a request does not say. */
  defaults: ModelDefaults;
  /** Requests for schedulers without a problem can be drawn. */
  schedulerProblems: SchedulerProblems;
  /** Why it cannot be used, and what to do. */
  problem?: string;
}

interface AddOptions {
  /** The name of the installed model. */
  as: string;
  /** Written into its `darkroom.json`, over what the source says. */
  defaults?: ModelDefaults;
  /** Where the relative path of a folder begins; the working directory when none is given. */
  from?: string;
  /** Branch, tag or commit of a repository; `main` when none is given. */
  revision?: string;
  /**
   * Draws with the complete folder before it is installed; models that only CUDA can draw are not tried.
   * @throws ModelFolderError
   */
  tryOut?: (folder: string, signal: AbortSignal) => Promise<void>;
  onProgress?: (progress: ModelProgress) => void;
  signal?: AbortSignal;
}

/** The models folder: lists, adds, verifies and removes models. One folder is one model. */
export class ModelStore {
  private readonly catalog: ModelCatalog;

  /** @param hub where `add` downloads from; the library reads no environment */
  constructor(
    private readonly modelsDir: string,
    private readonly hub: HubOptions = {},
  ) {
    this.catalog = new ModelCatalog(modelsDir);
  }

  /** Every model, by name. A broken one is listed with its problem. */
  async list(): Promise<InstalledModel[]> {
    const models: InstalledModel[] = [];
    for (const name of await namesIn(this.modelsDir)) {
      const model = await this.find(name);
      if (model) models.push(model);
    }
    return models;
  }

  /** What to tell about folders that `list` leaves out because of their names; undefined if there are none. */
  passedOver(): Promise<string | undefined> {
    return explainPassedOver(this.modelsDir);
  }

  /** The model of this name, or undefined. */
  async find(name: string): Promise<InstalledModel | undefined> {
    const folder = join(this.modelsDir, name);
    const found = isModelName(name) ? await stat(folder).catch(() => undefined) : undefined;
    if (!found?.isDirectory()) return undefined;
    const { installed } = await this.catalog.manifest(name);
    const model = { name, folder, source: installed?.source, addedAt: installed?.addedAt ?? found.mtime.toISOString() };
    try {
      const { hash, bytes, cudaOnly, fixed } = await this.catalog.content(name);
      const [defaults, schedulerProblems] = await Promise.all([
        readModelDefaults(folder),
        problemsOfSchedulers(folder),
      ]);
      return { ...model, hash, bytes, requiresCuda: cudaOnly.length > 0, fixed, defaults, schedulerProblems };
    } catch (error) {
      const problem = (error as Error).message.replaceAll(`${folder}${sep}`, '');
      const unknown = { requiresCuda: false, fixed: {}, defaults: {}, schedulerProblems: { named: {} } };
      return { ...model, hash: undefined, bytes: 0, ...unknown, problem };
    }
  }

  /**
   * Installs a model from a folder, or from a repository of the hub as `owner/name` or `owner/name@revision`. It
   * appears under its name completely or not at all; the next call resumes an interrupted download.
   * @throws ModelStoreError with any code
   */
  async add(
    pathOrRepository: string,
    { as: name, from, revision, defaults, tryOut, onProgress, signal }: AddOptions,
  ): Promise<InstalledModel> {
    checkModelName(name);
    checkDefaults(defaults);
    const source = await parseModelSource(pathOrRepository, revision, from);
    const folder = join(this.modelsDir, name);
    const part = join(this.modelsDir, `.${name}.part`);
    await withModelLock(this.modelsDir, name, signal, async (stop) => {
      if (await exists(folder))
        throw new ModelStoreError('ModelExists', `${name} is installed already; remove it first to replace it.`);
      const { origin, files } = await this.fetch(source, part, onProgress, stop);
      if (defaults) await explainRefusal(part, () => writeDefaults(part, defaults));
      const layout = await readLayout(part);
      const wanted = new Set([...layout.files, ...besideParts]);
      for (const path of await listFolder(part)) if (!wanted.has(path)) await rm(join(part, path));
      if (tryOut && layout.cudaOnly.length === 0) await explainRefusal(part, () => tryOut(part, stop));
      const digests = new Map(layout.files.map((path) => [path, files.get(path)!]));
      stop.throwIfAborted();
      await explainDiskErrors(rename(part, folder));
      const installed = { source: origin, addedAt: new Date().toISOString(), files: Object.fromEntries(digests) };
      await this.catalog.record(name, digests, layout, installed);
    }).catch(async (error: unknown) => {
      if (!(error instanceof ModelStoreError) || error.code !== 'InvalidModel') throw error;
      await rm(part, { recursive: true, force: true });
      const from = source.kind === 'hub' ? `${source.repository}@${source.revision}` : source.folder;
      const message = withFaults(`${from} is no model to draw with:`, error.message);
      throw new ModelStoreError('InvalidModel', message, { cause: error });
    });
    return (await this.find(name))!;
  }

  /**
   * Reads every file again and compares it with what was installed.
   * @throws ModelStoreError `ModelNotInstalled`, or `InvalidModel` for a folder put there by hand that is not a model
   */
  async verify(name: string, options: Pick<AddOptions, 'onProgress' | 'signal'> = {}): Promise<VerifyReport> {
    const { folder } = await this.require(name);
    return verifyModel(this.catalog, name, folder, options);
  }

  /** Removes a model and the rest of an interrupted download. @throws ModelStoreError `ModelNotInstalled` */
  async remove(name: string): Promise<void> {
    checkModelName(name);
    const folder = join(this.modelsDir, name);
    const part = join(this.modelsDir, `.${name}.part`);
    if (!(await exists(folder)) && !(await exists(part))) throw notInstalled(name);
    await withModelLock(this.modelsDir, name, undefined, async () => {
      const gone = join(this.modelsDir, `.${name}.removed`);
      await rm(gone, { recursive: true, force: true });
      // A link to a folder elsewhere is only unlinked.
      if ((await lstat(folder).catch(() => undefined))?.isSymbolicLink()) await unlink(folder);
      else if (await exists(folder)) await explainDiskErrors(rename(folder, gone));
      for (const path of [gone, part]) await rm(path, { recursive: true, force: true });
      await rm(manifestPath(this.modelsDir, name), { force: true });
      this.catalog.forget(name);
    });
  }

  private async fetch(
    source: ModelSource,
    part: string,
    onProgress: AddOptions['onProgress'],
    signal: AbortSignal,
  ): Promise<{ origin: string; files: Map<string, string> }> {
    if (source.kind === 'hub') {
      await explainDiskErrors(mkdir(part, { recursive: true }));
      const { commit, files } = await downloadModel(new HubClient(this.hub), source, part, onProgress, signal);
      return { origin: `${source.repository}@${commit}`, files };
    }
    await checkSource(source.folder);
    await rm(part, { recursive: true, force: true });
    await explainDiskErrors(mkdir(part));
    try {
      return { origin: source.folder, files: await copyModel(source.folder, part, onProgress, signal) };
    } catch (error) {
      await rm(part, { recursive: true, force: true });
      throw error;
    }
  }

  private async require(name: string): Promise<{ folder: string }> {
    const folder = join(this.modelsDir, checkModelName(name));
    if ((await stat(folder).catch(() => undefined))?.isDirectory()) return { folder };
    throw notInstalled(name);
  }
}

const notInstalled = (name: string): ModelStoreError =>
  new ModelStoreError('ModelNotInstalled', `There is no model ${name} here; "models list" shows what there is.`);

/** Whether anything has this name, even a dangling link. */
const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );
