import type { Config } from '@app/config';
import type { ImageTask } from '@app/domain';
import { Finetune } from '@app/domain';
import { CONFIG, IMAGE_STORAGE } from '@app/foundation';
import type { InstalledModel } from '@app/model-store';
import { ModelStore, shortHash, standIn, standInFor } from '@app/model-store';
import type { ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { FinetuneWeights, ModelSource } from '../engine/engine-protocol';
import { TaskRefusedError } from './task-refused-error';

/** The weights of a task, and how its record names them. */
export interface ResolvedModel {
  source: ModelSource;
  /** `<model>@<hash>`, followed by `+<hash>` of a Fine-Tune's weights. */
  servedBy: string;
}

/** Decides which installed weights draw a task. */
@Injectable()
export class ModelResolver {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly models: ModelStore,
    private readonly dataSource: DataSource,
  ) {}

  /** @throws TaskRefusedError when no installed weights may draw it */
  async resolve(task: Pick<ImageTask, 'model' | 'finetuneId'>): Promise<ResolvedModel> {
    const { name, folder, hash, problem } = await this.installed(task.model);
    if (hash === undefined) throw new TaskRefusedError(`The model ${name} cannot be drawn with: ${problem}`);
    const base = `${name}@${shortHash(hash)}`;
    const weights = task.finetuneId ? await this.weightsOf(task.finetuneId) : undefined;
    if (!weights) return { source: { key: `${name}@${hash}`, name, folder, hash }, servedBy: base };
    const key = `${name}@${hash}+${weights.kind}:${weights.hash}*${weights.scale}:${weights.token}`;
    return { source: { key, name, folder, hash, weights }, servedBy: `${base}+${shortHash(weights.hash)}` };
  }

  private async installed(name: string): Promise<InstalledModel> {
    const wanted = await this.models.find(name);
    if (wanted) return wanted;
    const other = this.config.modelFallback && standInFor.includes(name) ? await this.models.find(standIn) : undefined;
    if (other) return other;
    throw new TaskRefusedError(`The model ${name} is not installed.`);
  }

  /** A Fine-Tune without weights is drawn with its base model alone. */
  private async weightsOf(finetuneId: string): Promise<FinetuneWeights | undefined> {
    const finetune = await this.dataSource.manager.findOneBy(Finetune, { id: finetuneId });
    if (!finetune) throw new TaskRefusedError('The Fine-Tune has been deleted.');
    const { weightsKind, weightsHash, weightsKey, weightsScale, token } = finetune;
    if (!weightsKind || !weightsHash || !weightsKey) return undefined;
    const file = await this.storage.localPath(weightsKey);
    return { kind: weightsKind, file, hash: weightsHash, scale: weightsScale, token };
  }
}
