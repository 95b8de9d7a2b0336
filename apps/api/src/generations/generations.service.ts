import { ConflictError, defaults, Generation, isIdentifier, newIdentifier, NotFoundError } from '@app/domain';
import {
  type CreateGenerationDto,
  GenerationDto,
  type GenerationRecord,
  noPictures,
  type TaskQueryDto,
} from '@app/domain/http';
import { type NewTask, Tasks } from '@app/tasks';
import type { InstalledModel } from '@app/model-store';
import { crashPoint } from '@app/process';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { AcceptanceService } from './acceptance.service';
import type { CallerKey } from '../http/caller.decorator';
import { ModelsService } from '../models/models.service';
import { type CheckedInputs, resolvedOrder } from '../models/resolved-order';
import { GenerationsReader } from './generations.reader';
import { SentPictures, type SentPicturesBody } from './sent-pictures.service';
import { assertOfModel, findUsedFinetunes } from './used-finetunes';
import { ImageUrls } from '../files/image-urls';
import { filterTasks, type List, listOf } from '../http/list';
import { StoredFiles } from '../files/stored-files';

/** What a Generation is drawn with that only requests in the shape of OpenAI's API ask for. */
export interface OwnOptions extends Pick<SentPicturesBody, 'maskOf'> {
  /** Quality of its files, if not the usual one. */
  compression?: number;
  /** Whether `assertWanted` has let its text pass. */
  isWanted?: boolean;
}

/** A caller's Generations. */
@Injectable()
export class GenerationsService {
  constructor(
    @InjectRepository(Generation) private readonly generations: Repository<Generation>,
    private readonly tasks: Tasks,
    private readonly acceptance: AcceptanceService,
    private readonly models: ModelsService,
    private readonly pictures: SentPictures,
    private readonly reader: GenerationsReader,
    private readonly urls: ImageUrls,
    private readonly files: StoredFiles,
  ) {}

  /**
   * Looks at the text of a request, so that `create` need not, which may be inside a transaction.
   * @throws as `AcceptanceService.assertWanted` does
   */
  assertWanted(ownerId: string, { prompt, model = defaults.model, user = null }: CreateGenerationDto): Promise<void> {
    const asked = { ...{ ownerId, prompt, model, endUser: user }, kind: 'generation' as const, createdAt: new Date() };
    return this.acceptance.assertWanted(ownerId, { tasks: [asked], textPointerTo: () => '/prompt' });
  }

  /** Stores the request with every default resolved and the seed chosen. */
  async create(caller: CallerKey, dto: CreateGenerationDto & OwnOptions): Promise<GenerationDto> {
    this.acceptance.assertReceiversAllowed([dto], () => '');
    const uses = await findUsedFinetunes(this.generations.manager, caller.accountId, dto.finetunes ?? []);
    const model = dto.model ?? uses[0]?.finetune.model ?? defaults.model;
    const served = await this.models.served(
      model,
      dto.model === undefined && uses.length > 0 ? '/finetunes' : '/model',
    );
    assertOfModel(uses, model, served);
    const place = { accountId: caller.accountId, pointer: '', model, served };
    const { inputs, shape } = await this.pictures.check(dto, place);
    const used = uses.map(({ id, scale }) => ({ id, scale }));
    const { compression } = dto;
    const all = {
      ...(used.length > 0 && { finetunes: used }),
      ...inputs,
      ...(compression !== undefined && { compression }),
    };
    const tasks = [newGeneration(caller.id, dto, { model, served, shape, inputs: all })];
    const finetunes = uses.map(({ finetune }) => finetune);
    const { isWanted = false } = dto;
    const [task] = await this.acceptance.insert(caller, { served, tasks, finetunes, pointerTo: () => '', isWanted });
    crashPoint('after-insert');
    return GenerationDto.from(asInserted(task), noPictures);
  }

  /** @throws NotFoundError, also for another caller's. */
  async findOne(accountId: string, id: string): Promise<GenerationDto> {
    const generation = isIdentifier(id) ? await this.reader.find(accountId, id) : undefined;
    if (!generation) throw new NotFoundError('Generation');
    return generation;
  }

  list(accountId: string, filter: TaskQueryDto): List {
    const query = this.generations
      .createQueryBuilder('generation')
      .innerJoinAndSelect('generation.drawing', 'drawing')
      .innerJoinAndSelect('drawing.task', 'task')
      .where('generation.account_id = :accountId', { accountId });
    const present = async (rows: Generation[]) => {
      const urls = await this.urls.ofTasks(rows.map(({ id }) => id));
      return rows.map((row) => GenerationDto.from(row, urls.get(row.id)!));
    };
    return listOf(query, present, (rows) => filterTasks(rows, filter));
  }

  /** @throws ConflictError when it has succeeded or failed; one that is already canceled stays canceled. */
  async cancel(accountId: string, id: string): Promise<GenerationDto> {
    await this.findOne(accountId, id);
    const canceled = await this.tasks.cancel(id);
    const generation = await this.findOne(accountId, id);
    if (!canceled && generation.status !== 'canceled')
      throw new ConflictError(
        'GenerationTerminated',
        `The Generation has ${generation.status} and cannot be canceled.`,
      );
    return generation;
  }

  /** Cancels it if it has not terminated, and deletes its row and its pictures, and those that came with an edit. */
  async remove(accountId: string, id: string): Promise<void> {
    await this.findOne(accountId, id);
    const uploads = await this.tasks.remove(id);
    await this.files.removeAll([id, ...uploads]);
  }

  /** The record as GET returns it, for a webhook; undefined when it was deleted. */
  findForDelivery(accountId: string, id: string): Promise<GenerationDto | undefined> {
    return this.reader.find(accountId, id);
  }
}

function newGeneration(
  ownerId: string,
  dto: CreateGenerationDto,
  { model, served, ...checked }: CheckedInputs & { model: string; served: InstalledModel },
) {
  return {
    id: newIdentifier(),
    kind: 'generation' as const,
    ownerId,
    endUser: dto.user ?? null,
    finetuneId: null,
    prompt: dto.prompt,
    model,
    ...resolvedOrder(dto, checked, { model, served }),
    createdAt: new Date(),
    generation: { webhook: dto.webhook ?? null, metadata: dto.metadata ?? null },
  };
}

/** The row as a query would return it right after the insert. */
function asInserted({ generation, ...task }: ReturnType<typeof newGeneration> & NewTask): GenerationRecord {
  const unbegun = { startedAt: null, completedAt: null, computeSeconds: null };
  const row = { ...task, ...unbegun, status: 'queued', error: null } as const;
  const undrawn = { upscaler: null, servedBy: null, filtered: 0, flagged: [] };
  return { id: task.id, ...generation, drawing: { ...task, ...undrawn, task: row } };
}
