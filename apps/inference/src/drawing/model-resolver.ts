import { type Config, CONFIG } from '@app/config';
import { type DrawingTask, Finetune } from '@app/domain';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { findServing, type InstalledModel, ModelStore, problemOfKind } from '@app/model-store';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { FinetuneWeights, DrawnModel } from '../engine/engine-protocol';
import { DrawingAbortedError, EngineBrokenError, ModelBrokenError } from '../engine/engine-errors';
import { Engines } from '../engine/engines';
import { BrokenModels } from './broken-models';
import { TaskRefusedError } from './task-refused-error';
import { keyOf, servedByOf } from './weights-names';

type ResolvedTask = Pick<DrawingTask, 'model' | 'finetuneId' | 'weightsScale' | 'weightsHash'>;

/** What draws a task, and how its record names it. */
export interface ResolvedModel {
  source: DrawnModel;
  /** The Fine-Tune of its model. */
  adapters: readonly FinetuneWeights[];
  /** Which layer of the text encoder counts, where it is not the last. */
  clipSkip?: number | undefined;
  /** Of the Fine-Tune's weights in the storage. */
  weightsKey?: string | undefined;
  /** As `servedByOf`. */
  servedBy: string;
  /** Devices that have refused its files. */
  refusedOn: readonly string[];
}

/** Decides which installed weights draw a task. */
@Injectable()
export class ModelResolver {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly models: ModelStore,
    private readonly broken: BrokenModels,
    private readonly engines: Engines,
    private readonly dataSource: DataSource,
  ) {}

  /** @throws TaskRefusedError when no installed weights may draw it */
  async resolve(task: ResolvedTask): Promise<ResolvedModel> {
    const model = await this.installed(task.model);
    const { name, folder, hash, defaults, problem: unreadable = problemOfKind(model) } = model;
    const problem = unreadable ?? this.broken.problemOf({ name, hash: hash ?? '' }, this.engines.devices);
    if (hash === undefined || problem !== undefined)
      throw new TaskRefusedError(`The model ${name} cannot be drawn with: ${problem}`);
    const { weights, weightsKey } = task.finetuneId ? await this.weightsOf(task, task.finetuneId) : {};
    const adapters = weights ? [weights] : [];
    return {
      source: { key: keyOf({ name, hash, defaults }), name, folder, hash },
      adapters,
      clipSkip: defaults.clip_skip,
      weightsKey,
      refusedOn: this.broken.refusedOn({ name, hash }),
      servedBy: servedByOf({ name, hash }, adapters),
    };
  }

  /**
   * Remembers a model that a device has refused, so that it is not loaded there for every task.
   * @returns the error of the task: it is tried again if another device of this worker can draw it; a
   * DrawingAbortedError, which counts as no failure, if its weights were replaced before they were read
   */
  async errorAfterRefusal(
    error: Error,
    task: ResolvedTask,
    model: ResolvedModel,
    device: string | undefined,
  ): Promise<Error> {
    if (error instanceof EngineBrokenError && (await this.areWeightsReplaced(task, model)))
      return new DrawingAbortedError('The weights of the Fine-Tune were replaced meanwhile.');
    if (!(error instanceof ModelBrokenError) || device === undefined) return error;
    const { name, hash } = model.source;
    this.broken.add({ name, hash, problem: error.problem }, device);
    const isDrawnElsewhere = this.broken.problemOf({ name, hash }, this.engines.devices) === undefined;
    return isDrawnElsewhere ? new EngineBrokenError(`${device}: ${error.message}`) : error;
  }

  /** An upload deletes the file of the weights before it, which then cannot be read. */
  private async areWeightsReplaced({ finetuneId }: ResolvedTask, { weightsKey }: ResolvedModel): Promise<boolean> {
    if (!finetuneId || !weightsKey) return false;
    const finetune = await this.dataSource.manager.findOneBy(Finetune, { id: finetuneId });
    return finetune?.weightsKey !== weightsKey;
  }

  private async installed(name: string): Promise<InstalledModel> {
    const model = await findServing(this.models, name, this.config.modelFallback);
    if (model) return model;
    throw new TaskRefusedError(`The model ${name} is not installed.`);
  }

  /**
   * A Fine-Tune without weights is drawn with its base model alone; its weights have the scale that they had when
   * the task was accepted.
   */
  private async weightsOf(
    accepted: ResolvedTask,
    finetuneId: string,
  ): Promise<{ weights?: FinetuneWeights; weightsKey?: string }> {
    const finetune = await this.dataSource.manager.findOneBy(Finetune, { id: finetuneId });
    if (!finetune) throw new TaskRefusedError('The Fine-Tune has been deleted.');
    const { weightsKind, weightsHash, weightsKey, weightsScale, token } = finetune;
    if (!weightsKind || !weightsHash || !weightsKey) return {};
    const file = await this.storage.localPath(weightsKey);
    const scale = accepted.weightsHash === weightsHash ? (accepted.weightsScale ?? weightsScale) : weightsScale;
    return { weights: { kind: weightsKind, file, hash: weightsHash, scale, token }, weightsKey };
  }
}
