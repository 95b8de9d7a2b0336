import {
  defaults,
  Finetune,
  type FinetuneWeightsKind,
  InvalidError,
  limits,
  newIdentifier,
  UnprocessableError,
} from '@app/domain';
import { type CreateFinetuneDto, FinetuneDto, type UpdateFinetuneDto } from '@app/domain/http';
import { addStored, forgetReplies, Tasks } from '@app/tasks';
import { Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { findOwned } from '../http/find-owned';
import { ModelsService } from '../models/models.service';
import { type List, listOf } from '../http/list';
import { StoredFiles } from '../files/stored-files';

/** Prefix of uploaded weights in the storage. */
export const weightsFolder = 'weights';

/** Prefix of one Fine-Tune's weights. */
export function weightsFolderOf(finetuneId: string): string {
  return `${weightsFolder}/${finetuneId}`;
}

/** A caller's Fine-Tunes. */
@Injectable()
export class FinetunesService {
  constructor(
    @InjectRepository(Finetune) private readonly finetunes: Repository<Finetune>,
    private readonly transactions: Transactions,
    private readonly tasks: Tasks,
    private readonly models: ModelsService,
    private readonly files: StoredFiles,
  ) {}

  /** @throws InvalidError for too few pictures, UnprocessableError for a model that is not installed. */
  async create(ownerId: string, dto: CreateFinetuneDto): Promise<FinetuneDto> {
    checkTrainingImages(dto.images_url);
    const model = dto.model ?? defaults.model;
    await this.models.assertServed(model);
    const id = newIdentifier();
    await this.finetunes.insert({
      id,
      ownerId,
      name: dto.name,
      title: dto.title ?? null,
      token: dto.token ?? defaults.token,
      model,
      status: 'registered',
      metadata: (dto.metadata ?? null) as never,
      createdAt: new Date(),
    });
    const finetune = await this.findOne(ownerId, id);
    return dto.images_url ? { ...finetune, note: `${trainingNote(dto.images_url)} ${finetune.note}` } : finetune;
  }

  /** @throws NotFoundError also for another caller's. */
  async findOne(ownerId: string, id: string): Promise<FinetuneDto> {
    const [finetune] = await this.present([await this.load(ownerId, id)]);
    return finetune;
  }

  list(ownerId: string): List {
    const query = this.finetunes.createQueryBuilder('finetune').where('finetune.owner_id = :ownerId', { ownerId });
    return listOf(query, (rows) => this.present(rows));
  }

  /**
   * Changes what the body has, and leaves the rest.
   * @throws NotFoundError; UnprocessableError for a scale without weights, or of weights that have none.
   */
  async update(ownerId: string, id: string, { title, metadata, scale }: UpdateFinetuneDto): Promise<FinetuneDto> {
    await this.finetunes.manager.transaction(async (manager) => {
      const { weightsHash, weightsKind } = await findOwned(manager, Finetune, ownerId, id, {
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
    return this.findOne(ownerId, id);
  }

  /** Cancels and deletes its Prompts with their pictures, and its weights: first the rows together, then the files. */
  async remove(ownerId: string, id: string): Promise<void> {
    await this.load(ownerId, id);
    const drawn = await this.transactions.run(async (manager) => {
      const { weightsBytes } = await findOwned(manager, Finetune, ownerId, id, { lock: 'pessimistic_write' });
      // All transactions that lock several rows use the same order, so that none deadlock.
      const prompts: { id: string }[] = await manager.query(
        'SELECT id FROM finetune_prompts WHERE finetune_id = $1 ORDER BY id FOR UPDATE',
        [id],
      );
      const promptIds = prompts.map((prompt) => prompt.id);
      const drawnIds = await this.tasks.removeAll(manager, promptIds);
      await manager.delete(Finetune, { id });
      await addStored(manager, ownerId, { weightBytes: -(weightsBytes ?? 0) });
      await forgetReplies(manager, [id]);
      return drawnIds;
    });
    await this.files.removeTasks(drawn);
    await this.files.removeAll([weightsFolderOf(id)]);
  }

  /** As every route shows them. */
  async present(finetunes: readonly Finetune[]): Promise<FinetuneDto[]> {
    // Only of those with weights does it matter what draws them.
    const bases = await this.models.bases(finetunes.flatMap(({ weightsBase, model }) => (weightsBase ? model : [])));
    return finetunes.map((finetune) => FinetuneDto.from(finetune, bases.get(finetune.model)));
  }

  /** @throws NotFoundError also for another caller's. */
  load(ownerId: string, id: string): Promise<Finetune> {
    return findOwned(this.finetunes.manager, Finetune, ownerId, id);
  }
}

/** What is said of pictures for a training. */
function trainingNote(urls: readonly string[]): string {
  return `The ${urls.length} URLs of images_url were checked and are not kept: nothing is trained here.`;
}

/** Darkroom does not train, but it checks the images as a training service would. */
function checkTrainingImages(urls: readonly string[] | undefined): void {
  const { min } = limits.trainingImages;
  if (urls === undefined || urls.length >= min) return;
  const message = `must have at least ${min} elements, got ${urls.length}`;
  const code = urls.length === 0 ? 'FineTuneImagesMissing' : 'FineTuneImagesNotEnough';
  throw new InvalidError(code, `"/images_url" ${message}.`, [{ pointer: '/images_url', message }]);
}

/**
 * Refuses to scale what has no scale: the vectors of a textual inversion are what a word means, and are
 * not added to anything.
 * @param place where the request has the scale.
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
