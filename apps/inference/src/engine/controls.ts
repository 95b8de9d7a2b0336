import {
  type ControlFolder,
  ControlNet,
  type Device,
  type ModelFolder,
  ModelFolderError,
  modelWidths,
  providerOf,
  readControlFolder,
  RequestError,
} from '@app/diffusion';
import { LruMap } from '@app/process';
import type { DrawnModel } from './engine-protocol';
import { bytesPerRow, controlBytes } from './memory';
import type { LoadedControl, Models } from './models';
import type { Task } from './drawing';

/** ControlNets of which what was read is kept. */
const mostFolders = 16;

/** A ControlNet as its files were read. */
export interface ReadControl {
  model: DrawnModel;
  folder: ControlFolder;
}

/** The ControlNets of a device: read between the calls of others, and loaded beside the models that they guide. */
export class Controls {
  private readonly folders = new LruMap<ControlFolder>(mostFolders);

  constructor(
    private readonly options: { device: Device; intraOpNumThreads: number },
    private readonly models: Models,
  ) {}

  /** @throws RequestError for what is no ControlNet: that says nothing about the model that it is to guide */
  async read({ request: { control = [] } }: Task): Promise<ReadControl[]> {
    const read: ReadControl[] = [];
    for (const { model } of control) {
      const folder = this.folders.get(model.key) ?? (await readControlFolder(model.folder).catch(asRefusal(model)));
      this.folders.set(model.key, folder);
      read.push({ model, folder });
    }
    return read;
  }

  /** Bytes of those that are not in use, for which room has to be made. */
  bytesOf(controls: readonly ReadControl[], inUse: ReadonlySet<string>): number {
    const missing = new Map(
      controls.filter(({ model }) => !inUse.has(model.key)).map((each) => [each.model.key, each]),
    );
    return [...missing.values()].reduce((sum, { folder }) => sum + controlBytes(folder, this.options.device), 0);
  }

  /** Loads those of a task. @throws RequestError if one does not fit the model */
  async load(controls: readonly ReadControl[], folder: ModelFolder, task: Task): Promise<LoadedControl[]> {
    const loaded: LoadedControl[] = [];
    for (const control of controls) loaded.push(await this.loadOne(control, folder));
    const unet = bytesPerRow(modelWidths(folder), task.request, providerOf(this.options.device));
    for (const each of loaded) await this.models.reserve(each, { unet });
    return loaded;
  }

  private async loadOne({ model, folder }: ReadControl, guided: ModelFolder): Promise<LoadedControl> {
    const known = this.models.get<LoadedControl>(model.key);
    const problem = known?.pipeline.problemFor(guided);
    if (problem !== undefined) throw new RequestError(problem);
    const open = () => ControlNet.open(folder, guided, this.options).catch(asRefusal(model));
    return known ?? this.models.load<LoadedControl>(model.key, controlBytes(folder, this.options.device), open);
  }
}

const asRefusal =
  ({ name }: DrawnModel) =>
  (error: unknown): never => {
    if (!(error instanceof ModelFolderError)) throw error;
    throw new RequestError(`The ControlNet ${name} cannot be used: it ${error.reason}.`);
  };
