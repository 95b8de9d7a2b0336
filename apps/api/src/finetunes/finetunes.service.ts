import {
  DomainError,
  Finetune,
  FinetunePrompt,
  type FinetuneWeightsKind,
  Training,
  UnprocessableError,
} from '@app/domain';
import { FinetuneDto, type FinetuneQueryDto, type UpdateFinetuneDto } from '@app/domain/http';
import { finetuneRecordBytes, removeFinetune, Tasks, trainingFolder, weightsFolderOf, StorageQuota } from '@app/tasks';
import { Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { findOwned } from '../http/find-owned';
import { ModelsService } from '../models/models.service';
import { type List, listOf } from '../http/list';
import { StoredFiles } from '../files/stored-files';

/** A caller's Fine-Tunes. */
@Injectable()
export class FinetunesService {
  constructor(
    @InjectRepository(Finetune) private readonly finetunes: Repository<Finetune>,
    private readonly transactions: Transactions,
    private readonly tasks: Tasks,
    private readonly models: ModelsService,
    private readonly files: StoredFiles,
    private readonly quota: StorageQuota,
  ) {}

  /** Stores a Fine-Tune that is not trained here. @throws UnprocessableError `StorageFull` */
  async register(finetune: Finetune): Promise<void> {
    await this.finetunes.manager.transaction(async (manager) => {
      await manager.insert(Finetune, { ...finetune, status: 'registered' } as object);
      await this.quota.addRecords(manager, finetune.ownerId, finetuneRecordBytes);
    });
  }

  /** @throws NotFoundError, also for another caller's. */
  async findOne(accountId: string, id: string): Promise<FinetuneDto> {
    const [finetune] = await this.present([await this.load(accountId, id)]);
    return finetune;
  }

  list(accountId: string, { user }: FinetuneQueryDto): List {
    const query = this.finetunes
      .createQueryBuilder('finetune')
      .where('finetune.account_id = :accountId', { accountId });
    const ofUser = 'SELECT id FROM tasks WHERE account_id = :accountId AND end_user = :user';
    return listOf(
      query,
      (rows) => this.present(rows),
      (rows) => {
        if (user !== undefined) rows.andWhere(`finetune.id IN (${ofUser})`, { accountId, user });
      },
    );
  }

  /** @throws NotFoundError; UnprocessableError for a scale without weights, or of weights that have none. */
  async update(accountId: string, id: string, { title, metadata, scale }: UpdateFinetuneDto): Promise<FinetuneDto> {
    await this.finetunes.manager.transaction(async (manager) => {
      const { weightsHash, weightsKind } = await findOwned(manager, Finetune, accountId, id, {
        lock: 'pessimistic_write',
      });
      if (scale !== undefined && weightsHash === null)
        throw new UnprocessableError('WeightsMissing', 'The Fine-Tune has no weights that could be scaled.', [
          { pointer: '/scale', message: 'needs weights, and the Fine-Tune has none' },
        ]);
      if (scale !== undefined) refuseScale(weightsKind, scale, { pointer: '/scale' });
      const change = {
        ...(title !== undefined && { title: title.trim() === '' ? null : title }),
        ...(metadata !== undefined && { metadata: metadata as never }),
        ...(scale !== undefined && { weightsScale: scale }),
      };
      if (Object.keys(change).length > 0) await manager.update(Finetune, { id }, change);
    });
    return this.findOne(accountId, id);
  }

  /** Cancels and deletes its Prompts with their pictures, and its weights: first the rows together, then the files. */
  async remove(accountId: string, id: string): Promise<void> {
    await this.load(accountId, id);
    const { drawn, uploads } = await this.transactions.run(async (manager) =>
      removeFinetune(manager, await findOwned(manager, Finetune, accountId, id, { lock: 'pessimistic_write' })),
    );
    await this.files.removeTasks(drawn);
    await this.files.removeAll([weightsFolderOf(id), trainingFolder(id), ...uploads]);
  }

  /** Reads those again whose training has ended since: its end and the weights are of one transaction. */
  private async withWeights(
    finetunes: readonly Finetune[],
    trainings: ReadonlyMap<string, Training>,
  ): Promise<readonly Finetune[]> {
    const late = finetunes.filter(
      ({ id, weightsHash }) => weightsHash === null && trainings.get(id)?.task.status === 'succeeded',
    );
    if (late.length === 0) return finetunes;
    const again = await this.finetunes.findBy({ id: In(late.map(({ id }) => id)) });
    return finetunes.map((finetune) => again.find(({ id }) => id === finetune.id) ?? finetune);
  }

  async present(read: readonly Finetune[]): Promise<FinetuneDto[]> {
    const { manager } = this.finetunes;
    const where = { id: In(read.map(({ id }) => id)) };
    const trainings = new Map(
      (await manager.find(Training, { where, relations: { task: true } })).map((training) => [training.id, training]),
    );
    const finetunes = await this.withWeights(read, trainings);
    // Only for those with weights does it matter what draws them.
    const bases = await this.models.bases(finetunes.flatMap(({ weightsBase, model }) => (weightsBase ? model : [])));
    const asked = [...trainings.values()].flatMap(({ promptIds }) => promptIds);
    const found =
      asked.length > 0 ? await manager.find(FinetunePrompt, { select: { id: true }, where: { id: In(asked) } }) : [];
    const isThere = new Set(found.map(({ id }) => id));
    return finetunes.map((finetune) => {
      const training = trainings.get(finetune.id);
      const promptIds = training?.promptIds.filter((id) => isThere.has(id)) ?? [];
      return FinetuneDto.from(finetune, { base: bases.get(finetune.model), training, promptIds });
    });
  }

  /**
   * A Fine-Tune that is or was trained, or whose weights are or were fetched, for its event stream.
   * @throws NotFoundError also for another caller's; DomainError for any other
   */
  async findMade(accountId: string, id: string): Promise<FinetuneDto> {
    const finetune = await this.findOne(accountId, id);
    if (finetune.training || (await this.finetunes.manager.existsBy(Training, { id }))) return finetune;
    throw new DomainError('notFound', 'TrainingNotFound', 'The Fine-Tune was not trained here.');
  }

  /** The record as GET returns it, for a webhook; undefined when it was deleted. */
  async findForDelivery(accountId: string, id: string): Promise<FinetuneDto | undefined> {
    const finetune = await this.finetunes.findOneBy({ id, accountId });
    return finetune ? (await this.present([finetune]))[0] : undefined;
  }

  /** @throws NotFoundError, also for another caller's. */
  load(accountId: string, id: string): Promise<Finetune> {
    return findOwned(this.finetunes.manager, Finetune, accountId, id);
  }
}

/**
 * Refuses a scale for weights that have none: the vectors of a textual inversion are a word's meaning, not added to
 * anything.
 * @param place of the scale in the request.
 * @throws UnprocessableError
 */
export function refuseScale(
  kind: FinetuneWeightsKind | null,
  scale: number,
  place: { pointer: string } | { parameter: string },
): void {
  if (kind !== 'textual_inversion' || scale === 1) return;
  throw new UnprocessableError('ScaleUnsupported', 'A textual inversion has no scale; leave it out, or send 1.', [
    { ...place, message: `must be 1 for a textual inversion, got ${scale}` },
  ]);
}
