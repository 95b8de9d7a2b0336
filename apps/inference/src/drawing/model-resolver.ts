import type { Config } from '@app/config';
import type { ImageTask } from '@app/domain';
import { Finetune } from '@app/domain';
import { CONFIG, IMAGE_STORAGE } from '@app/foundation';
import type { InstalledModel } from '@app/model-store';
import { findServing, ModelStore, shortHash, weightsName } from '@app/model-store';
import type { ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { FinetuneWeights, DrawnModel } from '../engine/engine-protocol';
import { ModelBrokenError } from '../engine/engine-errors';
import { BrokenModels } from './broken-models';
import { KnownWeights } from './known-weights';
import { TaskRefusedError } from './task-refused-error';

type ResolvedTask = Pick<ImageTask, 'model' | 'finetuneId' | 'weightsHash' | 'weightsScale'>;

/** The weights of a task, and how its record names them. */
export interface ResolvedModel {
  source: DrawnModel;
  /** `<model>@<hash>`, followed by `+<hash>` of a Fine-Tune's weights. */
  servedBy: string;
  /** Whether no CPU can draw it. */
  requiresCuda: boolean;
}

/** Decides which installed weights draw a task. */
@Injectable()
export class ModelResolver {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly models: ModelStore,
    private readonly known: KnownWeights,
    private readonly broken: BrokenModels,
    private readonly dataSource: DataSource,
  ) {}

  /** @throws TaskRefusedError when no installed weights may draw it */
  async resolve(task: ResolvedTask): Promise<ResolvedModel> {
    const { name, folder, hash, problem: unreadable, requiresCuda } = await this.installed(task.model);
    const problem = hash === undefined ? unreadable : this.broken.problemOf({ name, hash });
    if (hash === undefined || problem !== undefined)
      throw new TaskRefusedError(`The model ${name} cannot be drawn with: ${problem}`);
    const base = { key: `${name}@${hash}`, name, folder, hash };
    const weights = task.finetuneId ? await this.weightsOf(task, task.finetuneId) : undefined;
    const source = weights ? { ...base, key: `${base.key}+${keyOf(weights)}`, weights } : base;
    this.known.remember(task, source.key);
    const servedBy = weightsName({ name, hash });
    return { source, servedBy: weights ? `${servedBy}+${shortHash(weights.hash)}` : servedBy, requiresCuda };
  }

  /** Remembers a model that an engine has refused, so that it is not loaded for every task. */
  note(error: unknown, { source: { name, hash } }: ResolvedModel): void {
    if (error instanceof ModelBrokenError) this.broken.add({ name, hash, problem: error.problem });
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
  private async weightsOf(accepted: ResolvedTask, finetuneId: string): Promise<FinetuneWeights | undefined> {
    const finetune = await this.dataSource.manager.findOneBy(Finetune, { id: finetuneId });
    if (!finetune) throw new TaskRefusedError('The Fine-Tune has been deleted.');
    const { weightsKind, weightsHash, weightsKey, weightsScale, token } = finetune;
    if (!weightsKind || !weightsHash || !weightsKey) return undefined;
    const file = await this.storage.localPath(weightsKey);
    const scale = accepted.weightsHash === weightsHash ? (accepted.weightsScale ?? weightsScale) : weightsScale;
    return { kind: weightsKind, file, hash: weightsHash, scale, token };
  }
}

function keyOf({ kind, hash, scale, token }: FinetuneWeights): string {
  return `${kind}:${hash}*${scale}:${token}`;
}
