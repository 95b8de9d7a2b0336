import {
  type ControlFolder,
  ControlNet,
  type ModelFolder,
  readControlFolder,
  RequestError,
  rowsOfPicture,
} from '@app/diffusion';
import { LRUCache } from 'lru-cache';
import type { ModelSource, ThreadOptions } from './engine-protocol';
import { asRequestError } from './failure';
import { bytesPerRow, controlRatio, controlWeightBytesOf } from './memory';
import type { LoadedControlNet, Models } from './models';
import type { EngineTask } from './running-task';

/** ControlNets whose headers are kept. */
const maxCachedFolders = 16;

/** A ControlNet whose headers are read. */
export interface ControlNetFiles {
  source: ModelSource;
  folder: ControlFolder;
}

/** The ControlNets of a device. Headers are read between calls; a ControlNet is loaded beside the model it guides. */
export class ControlNets {
  private readonly folders = new LRUCache<string, ControlFolder>({ max: maxCachedFolders });

  constructor(
    private readonly options: ThreadOptions,
    private readonly models: Models,
  ) {}

  /** Reads the headers of a task's ControlNets. @throws RequestError if a ControlNet is at fault */
  async read({ request: { control = [] } }: EngineTask): Promise<ControlNetFiles[]> {
    const read: ControlNetFiles[] = [];
    for (const { controlNet: source } of control) {
      const folder =
        this.folders.get(source.key) ??
        (await readControlFolder(source.folder).catch(asRequestError('ControlNet', source)));
      this.folders.set(source.key, folder);
      read.push({ source, folder });
    }
    return read;
  }

  /** Bytes that a task's ControlNets and their calls add to those in use. */
  bytesToAdd(controls: readonly ControlNetFiles[], guided: ModelFolder, task: EngineTask): number {
    const folders = new Map(controls.map(({ source, folder }) => [source.key, folder]));
    const denoiser = this.callBytes(guided, task);
    const bytesOf = (folder: ControlFolder): number => controlWeightBytesOf(folder, this.options.device);
    return [...folders].reduce((sum, [key, each]) => sum + this.models.bytesToAdd(key, bytesOf(each), { denoiser }), 0);
  }

  /** Loads the ControlNets of a task. @throws RequestError if one does not fit the guided model */
  async load(controls: readonly ControlNetFiles[], guided: ModelFolder): Promise<LoadedControlNet[]> {
    const loaded: LoadedControlNet[] = [];
    for (const control of controls) loaded.push(await this.loadOne(control, guided));
    return loaded;
  }

  /** Bytes of a ControlNet's call with the rows of one picture. */
  callBytes(guided: ModelFolder, { request }: EngineTask): number {
    return controlRatio * rowsOfPicture(guided.denoiser, request) * bytesPerRow(guided, request, this.options.device);
  }

  private async loadOne({ source, folder }: ControlNetFiles, guided: ModelFolder): Promise<LoadedControlNet> {
    const known = this.models.get<LoadedControlNet>(source.key);
    const problem = known?.instance.problemFor(guided);
    if (problem !== undefined) throw new RequestError(problem);
    const bytes = controlWeightBytesOf(folder, this.options.device);
    const open = () => ControlNet.open(folder, guided, this.options);
    return (
      known ?? this.models.load<LoadedControlNet>(source.key, bytes, open).catch(asRequestError('ControlNet', source))
    );
  }
}
