import { lstat, rename, rm, stat, unlink } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { ModelDefaults, TargetPrecision } from '@app/diffusion/files';
import { fetchModel, type OriginsBeside, refusalOf } from './fetch-model';
import { wantedPrecision } from './convert-model';
import type { HubOptions } from './hub/hub-client';
import { withModelLock } from './lock-model';
import { manifestPath, ModelCatalog } from './model-catalog';
import { checkDefaults, isOfOptions } from './installed-defaults';
import { prepareModel } from './prepare-model';
import type { ModelFacts } from './model-layout';
import { checkModelName, explainPassedOver, isModelName, namesIn } from './model-names';
import type { ModelProgress } from './model-progress';
import { type ModelOrigin, parseModelOrigin, parsePartOrigin } from './model-source';
import { explainDiskErrors, explainRefusal, ModelStoreError } from './model-store-error';
import type { AddedKind } from './select-files';
import { hashedBeside } from './place-files';
import { verifyModel, type VerifyReport } from './verify-model';

/** A folder of the models folder. The facts of its model are absent if it cannot be read. */
export interface InstalledModel extends Partial<ModelFacts> {
  name: string;
  /** Absolute path. */
  folder: string;
  /** Content hash, sha256 in hexadecimal; undefined if `problem` is set. */
  hash: string | undefined;
  /** Size of the files that pictures depend on. */
  bytes: number;
  /** `owner/name@commit` or the path it was added from; undefined for a folder that was put there by hand. */
  source: string | undefined;
  /** ISO 8601; the folder's own time if it was put there by hand. */
  addedAt: string;
  defaults: ModelFacts['defaults'];
  schedulerProblems: ModelFacts['schedulerProblems'];
  /** Why it cannot be used, and what to do. */
  problem?: string;
}

interface AddOptions {
  as: string;
  /** A file with the autoencoder that it gets in place of its own: a path, or one on the hub. */
  vae?: string;
  /** A file with the text encoder of a transformer that comes in a file of its own, in the same way. */
  textEncoder?: string;
  /** Whether such a transformer was distilled to draw in a few steps; the name of its file tells where nobody does. */
  isDistilled?: boolean;
  /** What it is; a source of another kind is refused. */
  kind?: AddedKind;
  /** Written into its `darkroom.json`, over what the source says. */
  defaults?: ModelDefaults;
  /** Where relative paths begin; the working directory when none is given. */
  from?: string;
  /** Precision of its weights, `float32` to leave them as they are; by default as {@link usualPrecision} says. */
  precision?: TargetPrecision;
  /** Whether it is for GPUs alone, which widen int8 again: nobody needs to ask for another precision then. */
  isForGpu?: boolean;
  /** Branch, tag or commit of a repository; `main` when none is given. */
  revision?: string;
  /**
   * Draws with the complete folder before it is installed.
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

  /** A remark on folders that `list` leaves out because of their names; undefined if there are none. */
  passedOver(): Promise<string | undefined> {
    return explainPassedOver(this.modelsDir);
  }

  async find(name: string): Promise<InstalledModel | undefined> {
    const folder = join(this.modelsDir, name);
    const found = isModelName(name) ? await stat(folder).catch(() => undefined) : undefined;
    if (!found?.isDirectory()) return undefined;
    const { installed } = await this.catalog.manifest(name);
    const model = { name, folder, source: installed?.source, addedAt: installed?.addedAt ?? found.mtime.toISOString() };
    try {
      const { hash, bytes, facts } = await this.catalog.content(name);
      return { ...model, hash, bytes, ...facts };
    } catch (error) {
      const problem = (error as Error).message.replaceAll(`${folder}${sep}`, '');
      return { ...model, hash: undefined, bytes: 0, defaults: {}, schedulerProblems: { named: {} }, problem };
    }
  }

  /**
   * Installs a model from a file (a checkpoint, or of parts) or a folder, or from the hub: `owner/name` or
   * `owner/name@revision` for a repository, with `/path/of/file` for a file of one. It appears under its name
   * completely or not at all; the next call resumes what was interrupted, a download or a conversion.
   * @returns also whether its weights are the files of the source themselves, and take no space of their own, and the
   * licence that its repository states
   * @throws ModelStoreError with any code
   */
  async add(
    source: string,
    { as: name, kind = 'model', precision, from, revision, defaults, signal, ...given }: AddOptions,
  ): Promise<InstalledModel & { isLinked: boolean; licence?: string }> {
    checkModelName(name);
    checkDefaults(defaults);
    const { vae, textEncoder, tryOut, onProgress } = given;
    if (
      kind !== 'model' &&
      [vae, textEncoder, given.isDistilled, defaults, precision].some((value) => value !== undefined)
    )
      throw new ModelStoreError('InvalidDefaults', notOfKind);
    const parsed = await parseModelOrigin(source, revision, from);
    const originOf = (text: string | undefined) => (text === undefined ? undefined : parsePartOrigin(text, from));
    const beside = { text_encoder: await originOf(textEncoder), vae: await originOf(vae) };
    const folder = join(this.modelsDir, name);
    const partial = this.partialPath(name);
    let more: { isLinked: boolean; licence?: string } = { isLinked: false };
    await withModelLock(this.modelsDir, name, signal, async (stop) => {
      if (await exists(folder))
        throw new ModelStoreError('ModelExists', `${name} is installed already; remove it first to replace it.`);
      const watched = { onProgress, signal: stop };
      const fetched = await fetchModel(parsed, beside, partial, {
        ...{ hub: this.hub, kind },
        // Whether its files are of parts shows later: more room is needed for int8 alone.
        precision: wantedPrecision({ precision, isForGpu: given.isForGpu }, false),
        ...watched,
      });
      const { files, isLinked, ready, layout } = await prepareModel(fetched, {
        ...{ modelsDir: this.modelsDir, partial, converted: this.convertedPath(name), source, kind, precision },
        ...{ defaults, ...given, ...watched },
      });
      more = { isLinked, ...(fetched.licence && { licence: fetched.licence }) };
      // Linked files are not read yet, and reading them takes as long as trying the model.
      const unread = layout.files.filter((path) => !files.has(path));
      const read = await hashedBeside(ready, unread, watched, async () => {
        if (tryOut) await explainRefusal(ready, () => tryOut(ready, stop));
      });
      const digests = new Map(layout.files.map((path) => [path, files.get(path) ?? read.get(path)!]));
      stop.throwIfAborted();
      await explainDiskErrors(rename(ready, folder));
      await rm(partial, { recursive: true, force: true });
      const { origin } = fetched;
      const installed = { source: origin, addedAt: new Date().toISOString(), files: Object.fromEntries(digests) };
      await this.catalog.record(name, digests, layout, installed);
    }).catch(async (error: unknown) => {
      throw await this.refusal(error, name, kind, parsed, beside);
    });
    return { ...(await this.find(name))!, ...more };
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
    const partial = this.partialPath(name);
    if (!(await exists(folder)) && !(await exists(partial))) throw notInstalled(name);
    await withModelLock(this.modelsDir, name, undefined, async () => {
      const gone = join(this.modelsDir, `.${name}.removed`);
      await rm(gone, { recursive: true, force: true });
      // A link to a folder elsewhere is only unlinked.
      if ((await lstat(folder).catch(() => undefined))?.isSymbolicLink()) await unlink(folder);
      else if (await exists(folder)) await explainDiskErrors(rename(folder, gone));
      for (const path of [gone, partial, this.convertedPath(name)]) await rm(path, { recursive: true, force: true });
      await rm(manifestPath(this.modelsDir, name), { force: true });
      this.catalog.forget(name);
    });
  }

  /** What `add` throws for what it was refused with; it removes what nobody can use. */
  private async refusal(
    error: unknown,
    name: string,
    kind: AddedKind,
    source: ModelOrigin,
    beside: OriginsBeside,
  ): Promise<unknown> {
    if (!(error instanceof ModelStoreError) || !isRefusal(error)) return error;
    const isDownloaded = [source, beside.text_encoder, beside.vae].some((origin) => origin?.kind === 'hub');
    // What was downloaded may be right beside other options.
    if (!isDownloaded || !(error.code === 'InvalidSource' || isOfOptions(error)))
      for (const path of [this.partialPath(name), this.convertedPath(name)])
        await rm(path, { recursive: true, force: true });
    if (error.code !== 'InvalidModel') return error;
    const what = kind === 'safety' ? 'safety checker' : 'model to draw with';
    const refusal = refusalOf(source, what, beside.vae?.file, error.message);
    return new ModelStoreError('InvalidModel', refusal, { cause: error });
  }

  /** The folder that a model's files are brought into, until all of them are there. */
  private partialPath(name: string): string {
    return join(this.modelsDir, `.${name}.part`);
  }

  /** The folder that a model is written into whose files are of parts or get another precision. */
  private convertedPath(name: string): string {
    return join(this.modelsDir, `.${name}.converted`);
  }

  private async require(name: string): Promise<{ folder: string }> {
    const folder = join(this.modelsDir, checkModelName(name));
    if ((await stat(folder).catch(() => undefined))?.isDirectory()) return { folder };
    throw notInstalled(name);
  }
}

const isRefusal = ({ code }: ModelStoreError): boolean =>
  ['InvalidModel', 'InvalidDefaults', 'InvalidSource'].includes(code);

const notOfKind =
  'A ControlNet or a safety checker has no autoencoder, no precision and no defaults: these are of models that draw.';

const notInstalled = (name: string): ModelStoreError =>
  new ModelStoreError('ModelNotInstalled', `There is no model ${name} here; "models list" shows what there is.`);

/** Whether anything has this name, even a dangling link. */
const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );
