import { isGuided, type ModelFolder, readModelFolder, RequestError, rowsOfPicture } from '@app/diffusion';
import { LRUCache } from 'lru-cache';
import type { AdaptedModel, Adapters } from './adapters';
import type { ControlNets, ControlNetFiles } from './control-nets';
import type { EngineTask } from './running-task';
import type { ThreadOptions } from './engine-protocol';
import { bytesPerRow, type CallBytes, encodePictureBytes, textWeightBytesOf, weightBytesOf } from './memory';
import type { Models } from './models';

/** Models whose headers are kept. */
const maxCachedFolders = 8;

/** Contents of the files that a task is drawn with, and the memory that it needs. */
export interface TaskNeeds extends AdaptedModel {
  folder: ModelFolder;
  controls: readonly ControlNetFiles[];
  weightBytes: number;
  /** The smallest calls that suffice: one picture at a time. */
  minCallBytes: CallBytes;
  /** What encodes its texts, which is loaded apart: it may be as large as the model, and is needed only then. */
  texts: Pick<AdaptedModel, 'modelKey' | 'mergedWeights'> & { weightBytes: number; minCallBytes: CallBytes };
}

/** Reads the files of tasks: headers of models and ControlNets, and adapters. */
export class TaskReader {
  private readonly folders = new LRUCache<string, ModelFolder>({ max: maxCachedFolders });

  constructor(
    private readonly options: ThreadOptions,
    private readonly models: Models,
    private readonly adapters: Adapters,
    private readonly controls: ControlNets,
  ) {}

  /** @throws ModelFolderError, WeightsError or RequestError, depending on what is at fault */
  async read(task: EngineTask): Promise<TaskNeeds> {
    const { model, request } = task;
    const folder = this.folders.get(model.key) ?? (await readModelFolder(model.folder));
    this.folders.set(model.key, folder);
    // The model can still draw from texts alone, so the request is at fault and not the model.
    const pictures = [...(request.image ? [request.image] : []), ...(request.references ?? [])];
    if (request.image && !folder.autoencoder.hasEncoder)
      throw new RequestError(`The model ${model.name} has no encoder, so it cannot draw from \`image\`.`);
    const controls = await this.controls.read(task);
    const adapted = await this.adapters.adapt(model, folder, task.adapters);
    const { device } = this.options;
    const { conditioner, denoiser, autoencoder } = folder;
    const minCallBytes = {
      ...(pictures.length > 0 && { vaeEncoder: encodePictureBytes(folder, pictures) }),
      denoiser: rowsOfPicture(denoiser, request) * bytesPerRow(folder, request, device),
      vaeDecoder: autoencoder.callBytes(request),
    };
    const weightBytes = weightBytesOf(folder, device);
    const texts = {
      modelKey: `${adapted.textsKey} texts`,
      mergedWeights: adapted.textsKey === model.key ? undefined : adapted.mergedWeights,
      weightBytes: textWeightBytesOf(folder, device),
      minCallBytes: { conditioner: conditioner.callBytes(request, isGuided(denoiser, request)) },
    };
    // This comes last: if anything failed after it, the file would be left over.
    if (!this.models.has(adapted.modelKey)) await adapted.mergedWeights?.();
    return { ...adapted, folder, controls, weightBytes, minCallBytes, texts };
  }
}
