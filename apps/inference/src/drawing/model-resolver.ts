import { type Config, CONFIG } from '@app/config';
import { ApiKey, type DrawingTask, Finetune, type KeyFilter, type Task } from '@app/domain';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import {
  findSafety,
  findServing,
  findTrained,
  type InstalledModel,
  modelKey,
  ModelStore,
  problemOfKind,
} from '@app/model-store';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource, In } from 'typeorm';
import type { AdapterSource, ModelSource, SafetySource } from '../engine/engine-protocol';
import { EngineBrokenError, ModelBrokenError, TaskAbortedError, TaskRefusedError } from '../engine-client/task-errors';
import { Engines } from '../engine-client/engines';
import { BrokenModels } from './broken-models';
import { type InstalledUpscaler, plainUpscaler, Upscalers } from './upscalers';
import { servedByOf } from './weights-names';

type ResolvedTask = Pick<
  DrawingTask,
  'model' | 'ownerId' | 'accountId' | 'finetuneId' | 'weightsScale' | 'weightsHash' | 'inputs' | 'highResolution'
>;

type TaskModel = Pick<Task, 'model'> & Partial<Pick<DrawingTask, 'inputs'>>;

/** The weights that draw a task, and how its record names them. */
export interface ResolvedModel {
  source: ModelSource;
  adapters: readonly AdapterSource[];
  controls?: readonly ModelSource[];
  /** Which layer of the text encoder counts, where it is not the last. */
  clipSkip?: number | undefined;
  /** How its weights are stored. */
  precision?: InstalledModel['precision'];
  /** Keys of the weights in the storage, by the id of the Fine-Tune. */
  weightsKeys?: ReadonlyMap<string, string>;
  /** For a task in high resolution: the installed upscaler, if there is one. */
  upscaler?: InstalledUpscaler | undefined;
  plainUpscaler: string;
  /** What becomes of flagged pictures, and what flags them; off without it. */
  filter?: Exclude<KeyFilter, 'off'>;
  safety?: SafetySource;
  /** As `servedByOf`. */
  servedBy: string;
  refusedOn: readonly string[];
}

interface ResolvedWeights {
  finetuneId: string;
  key: string;
  adapter: AdapterSource;
}

/** Decides which installed weights draw a task. */
@Injectable()
export class ModelResolver {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly models: ModelStore,
    private readonly upscalers: Upscalers,
    private readonly broken: BrokenModels,
    private readonly engines: Engines,
    private readonly dataSource: DataSource,
  ) {}

  /** The model of a task. @throws TaskRefusedError if it is not there, or cannot be drawn with */
  async modelOf({ model: asked, inputs }: TaskModel): Promise<InstalledModel & { hash: string; key: string }> {
    const model = await findServing(this.models, asked, this.config.modelFallback);
    if (!model) throw new TaskRefusedError(`The model ${asked} is not installed.`);
    const { name, hash, problem: unreadable = problemOfKind(model, inputs ?? {}) } = model;
    const key = modelKey(model);
    const problem = unreadable ?? this.broken.problemOf(key, this.engines.devices);
    if (hash === undefined || problem !== undefined)
      throw new TaskRefusedError(`The model ${name} cannot be drawn with: ${problem}`);
    return { ...model, hash, key };
  }

  /** The model that is trained for Fine-Tunes of one. @throws TaskRefusedError if none can be */
  async trainedFor(drawn: InstalledModel): Promise<InstalledModel & { hash: string; key: string }> {
    const found = await findTrained(this.models, drawn);
    if (typeof found === 'string') throw new TaskRefusedError(`The model ${drawn.name} cannot be trained. ${found}`);
    return this.modelOf({ model: found.name });
  }

  /** @throws TaskRefusedError when no installed weights may draw it */
  async resolve(task: ResolvedTask): Promise<ResolvedModel> {
    const { name, folder, hash, key, defaults, precision } = await this.modelOf(task);
    const weights = await this.weightsOf(task);
    const adapters = weights.map(({ adapter }) => adapter);
    return {
      source: { key, name, folder, hash },
      adapters,
      controls: await this.controlsOf(task),
      upscaler: task.highResolution ? await this.upscalers.find() : undefined,
      plainUpscaler,
      clipSkip: defaults.clip_skip,
      precision,
      weightsKeys: new Map(weights.map(({ finetuneId, key }) => [finetuneId, key])),
      refusedOn: this.broken.refusedOn(key),
      ...(await this.safetyOf(task)),
      servedBy: servedByOf({ name, hash, precision }, adapters),
    };
  }

  /**
   * Remembers a model that a device has refused, so that it is not loaded there for every task.
   * @returns the error of the task: it is tried again if another device of this worker can draw it; a
   * TaskAbortedError, which counts as no failure, if its weights were replaced before they were read
   */
  async errorAfterRefusal(error: Error, model: ResolvedModel, device: string | undefined): Promise<Error> {
    if (error instanceof EngineBrokenError && (await this.areWeightsReplaced(model.weightsKeys)))
      return new TaskAbortedError('The weights of the Fine-Tune were replaced meanwhile.');
    if (!(error instanceof ModelBrokenError) || device === undefined) return error;
    const { key } = model.source;
    this.broken.add({ key, problem: error.problem }, device);
    const isDrawnElsewhere = this.broken.problemOf(key, this.engines.devices) === undefined;
    return isDrawnElsewhere ? new EngineBrokenError(`${device}: ${error.message}`) : error;
  }

  /** An upload deletes the file of the weights before it, which then cannot be read. */
  private async areWeightsReplaced(weightsKeys: ResolvedModel['weightsKeys'] = new Map()): Promise<boolean> {
    if (weightsKeys.size === 0) return false;
    const finetunes = await this.dataSource.manager.findBy(Finetune, { id: In([...weightsKeys.keys()]) });
    return [...weightsKeys].some(([id, key]) => finetunes.find((each) => each.id === id)?.weightsKey !== key);
  }

  /** The filter of a key, as it is now. Of a key that is not there nobody knows that it is off. */
  async filterOf(ownerId: string): Promise<KeyFilter> {
    const key = await this.dataSource.manager.findOneBy(ApiKey, { id: ownerId });
    return key?.filter ?? 'block';
  }

  /** What looks at the pictures of a key. @throws TaskRefusedError if it should, and nothing can */
  private async safetyOf({ ownerId }: ResolvedTask): Promise<Pick<ResolvedModel, 'filter' | 'safety'>> {
    const filter = await this.filterOf(ownerId);
    if (filter === 'off') return {};
    const { name, folder, hash } = (await findSafety(this.models)) ?? {};
    if (name === undefined || folder === undefined || hash === undefined)
      throw new TaskRefusedError('The filter of the key needs a safety checker, and none is installed here.');
    return { filter, safety: { key: `safety:${name}@${hash}`, name, folder, hash, blocks: filter === 'block' } };
  }

  /** @throws TaskRefusedError for one that is not there any more */
  private async controlsOf({ inputs }: ResolvedTask): Promise<ModelSource[]> {
    const controls: ModelSource[] = [];
    for (const [index, { model: name }] of (inputs?.control ?? []).entries()) {
      const { hash, folder, problem = 'it is not installed' } = (await this.models.find(name)) ?? {};
      if (hash === undefined || folder === undefined)
        throw new TaskRefusedError(`The ControlNet ${name} in \`control[${index}].model\` cannot be used: ${problem}`);
      controls.push({ key: `control:${name}@${hash}`, name, folder, hash });
    }
    return controls;
  }

  /**
   * A Prompt's Fine-Tune without weights is drawn with its base model alone; its weights have the scale that they had
   * when the task was accepted.
   */
  private async weightsOf(task: ResolvedTask): Promise<ResolvedWeights[]> {
    const { finetuneId, accountId, inputs } = task;
    const asked: readonly { id: string; scale?: number }[] = finetuneId
      ? [{ id: finetuneId }]
      : (inputs?.finetunes ?? []);
    if (asked.length === 0) return [];
    const found = await this.dataSource.manager.findBy(Finetune, { accountId, id: In(asked.map(({ id }) => id)) });
    const weights: ResolvedWeights[] = [];
    for (const { id, scale } of asked) {
      const finetune = found.find((each) => each.id === id);
      if (!finetune) throw new TaskRefusedError(`The Fine-Tune ${finetuneId ? '' : `${id} `}has been deleted.`);
      const { weightsKind: kind, weightsHash: hash, weightsKey: key, weightsScale, token } = finetune;
      if (!kind || !hash || !key) continue;
      const accepted = task.weightsHash === hash ? (task.weightsScale ?? weightsScale) : weightsScale;
      const file = await this.storage.localPath(key).catch(async (error: unknown) => {
        if (await this.areWeightsReplaced(new Map([[id, key]]))) return undefined;
        throw error;
      });
      if (file === undefined) return this.weightsOf(task);
      weights.push({ finetuneId: id, key, adapter: { kind, file, hash, scale: scale ?? accepted, token } });
    }
    return weights;
  }
}
