import { type Drawing, type Finetune, FinetunePrompt, NotFoundError, UnprocessableError } from '@app/domain';
import {
  type ApplyStyleDto,
  CreatedPromptDto,
  type CreatePromptDto,
  type PartialPromptDto,
  PromptDto,
  staleNote,
  type TaskQueryDto,
  TerminatedPromptDto,
} from '@app/domain/http';
import { weightsName } from '@app/model-store';
import { Tasks } from '@app/tasks';
import { Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { AcceptanceService, type RequestedTasks } from '../generations/acceptance.service';
import { SentPictures } from '../generations/sent-pictures.service';
import type { CallerKey } from '../http/caller.decorator';
import { findOwned } from '../http/find-owned';
import { FinetunesService } from './finetunes.service';
import { assertDrawable } from '../models/assert-drawable';
import { ModelsService } from '../models/models.service';
import { ImageUrls } from '../files/image-urls';
import { filterTasks, type List, listOf } from '../http/list';
import { StoredFiles } from '../files/stored-files';
import { stylesToApply } from '../collections/applied-styles';
import { fillIn, type NewPrompt, newPrompt, refuseWithoutName } from './new-prompt';

/** The Prompts of a caller's Fine-Tunes. */
@Injectable()
export class FinetunePromptsService {
  constructor(
    @InjectRepository(FinetunePrompt) private readonly prompts: Repository<FinetunePrompt>,
    private readonly finetunes: FinetunesService,
    private readonly transactions: Transactions,
    private readonly tasks: Tasks,
    private readonly acceptance: AcceptanceService,
    private readonly models: ModelsService,
    private readonly pictures: SentPictures,
    private readonly urls: ImageUrls,
    private readonly files: StoredFiles,
  ) {}

  /**
   * Creates one Prompt per element, all or none, in the order of the input; the last is the newest.
   * @throws NotFoundError for the Fine-Tune, UnprocessableError naming each text without its name.
   */
  async create(caller: CallerKey, finetuneId: string, dtos: readonly CreatePromptDto[]): Promise<CreatedPromptDto[]> {
    const finetune = await this.finetunes.load(caller.id, finetuneId);
    this.acceptance.assertReceiversAllowed(dtos, (index) => `/${index}`);
    await this.acceptance.assertQueueRoom(caller, dtos.length);
    await refuseWithoutName(finetune, dtos);
    const served = await this.models.served(finetune.model);
    const createdAt = new Date();
    const prompts: NewPrompt[] = [];
    // One after the other: there are at most a hundred, and each may ask the database for its pictures.
    for (const [index, dto] of dtos.entries()) {
      const place = { ownerId: caller.id, pointer: `/${index}`, model: finetune.model, served };
      const order = {
        prompt: dto.prompt,
        negativePrompt: dto.negative_prompt,
        cfg: dto.cfg,
        steps: dto.steps,
        aspectRatio: undefined,
        ...(await this.pictures.check(dto, place)),
        ...fieldsOfBothBodies(dto),
      };
      prompts.push(newPrompt(finetune, order, createdAt, served));
    }
    await this.insert(caller, { served, tasks: prompts, pointerTo: (index) => `/${index}` }, finetune);
    return prompts.map(({ id, finetunePrompt, ...drawing }) =>
      CreatedPromptDto.from({ id, ...finetunePrompt, drawing: { ...drawing, task: { error: null, createdAt } } }),
    );
  }

  /**
   * Creates one Prompt per Style of each element, in the order of the input and of the Collections.
   * @throws NotFoundError for the Fine-Tune, UnprocessableError for an `id` that is not a Style or for too many Styles.
   */
  async applyStyles(
    caller: CallerKey,
    finetuneId: string,
    dtos: readonly ApplyStyleDto[],
  ): Promise<PartialPromptDto[]> {
    const finetune = await this.finetunes.load(caller.id, finetuneId);
    this.acceptance.assertReceiversAllowed(dtos, (index) => `/${index}`);
    const styles = await stylesToApply(this.prompts.manager, caller.id, dtos);
    await this.acceptance.assertQueueRoom(caller, styles.flat().length);
    const [texts, served] = await Promise.all([fillIn(styles, finetune), this.models.served(finetune.model)]);
    assertDrawable(served, {});
    const createdAt = new Date();
    const made = dtos.flatMap((dto, index) =>
      styles[index].map((style, place) => ({
        dto,
        pointer: `/${index}`,
        prompt: newPrompt(
          finetune,
          {
            prompt: texts[index][place],
            negativePrompt: style.negativePrompt,
            cfg: style.cfg,
            steps: style.steps,
            aspectRatio: aspectRatioOf(dto),
            inputs: {},
            ...fieldsOfBothBodies(dto),
          },
          createdAt,
          served,
        ),
      })),
    );
    const tasks = made.map(({ prompt }) => prompt);
    const pointerTo = (index: number): string => made[index].pointer;
    const textPointerTo = (index: number): string => `${made[index].pointer}/id`;
    await this.insert(caller, { served, tasks, pointerTo, textPointerTo }, finetune);
    // The DTO contains exactly what was sent: an omitted field does not exist. A webhook is not part of the record.
    return made.map(({ dto: { id: _styleId, webhook: _webhook, ...sent }, prompt: { id } }) => ({
      id,
      error_message: null,
      images: [],
      created_at: createdAt.toISOString(),
      ...sent,
    }));
  }

  /** @throws NotFoundError for the Fine-Tune. */
  async list(ownerId: string, finetuneId: string, filter: TaskQueryDto): Promise<List> {
    await this.finetunes.load(ownerId, finetuneId);
    const query = this.prompts
      .createQueryBuilder('prompt')
      .innerJoinAndSelect('prompt.drawing', 'drawing')
      .innerJoinAndSelect('drawing.task', 'task')
      .where('prompt.owner_id = :ownerId AND prompt.finetune_id = :finetuneId', { ownerId, finetuneId });
    const present = async (rows: FinetunePrompt[]) => {
      const urls = await this.urls.ofTasks(rows.map(({ id }) => id));
      return rows.map((row) => PromptDto.from(row, urls.get(row.id) ?? []));
    };
    return listOf(query, present, (rows) => filterTasks(rows, filter));
  }

  /** @throws NotFoundError for the Fine-Tune, else for the Prompt. */
  async findOne(ownerId: string, finetuneId: string, id: string): Promise<PromptDto> {
    const prompt = await this.load(ownerId, finetuneId, id);
    const urls = await this.urls.ofTasks([id]);
    return PromptDto.from(prompt, urls.get(id) ?? []);
  }

  /**
   * The Prompt with its status, for the end of its event stream.
   * @throws NotFoundError for the Fine-Tune, else for the Prompt.
   */
  async findTerminated(ownerId: string, finetuneId: string, id: string): Promise<TerminatedPromptDto> {
    const prompt = await this.load(ownerId, finetuneId, id);
    const urls = await this.urls.ofTasks([id]);
    return TerminatedPromptDto.ended(prompt, urls.get(id) ?? []);
  }

  /** What draws the Prompt. @throws NotFoundError for the Fine-Tune, else for the Prompt. */
  async findDrawing(ownerId: string, finetuneId: string, id: string): Promise<Drawing> {
    return (await this.load(ownerId, finetuneId, id)).drawing;
  }

  /** The record as GET returns it, for a webhook; undefined when it was deleted. */
  async findForDelivery(ownerId: string, id: string): Promise<PromptDto | undefined> {
    const prompt = await this.prompts.findOne({ where: { id, ownerId }, relations: { drawing: { task: true } } });
    const urls = await this.urls.ofTasks([id]);
    return prompt ? PromptDto.from(prompt, urls.get(id) ?? []) : undefined;
  }

  /**
   * Cancels it if it has not terminated, and deletes its row and its pictures; Styles made from it keep its thumbnail.
   */
  async remove(ownerId: string, finetuneId: string, id: string): Promise<void> {
    await this.finetunes.load(ownerId, finetuneId);
    const within = { finetuneId };
    await this.transactions.run(async (manager) => {
      const lock = 'pessimistic_write';
      await findOwned(manager, FinetunePrompt, ownerId, id, { within, lock });
      await this.tasks.removeAll(manager, [id]);
    });
    await this.files.removeTasks([id]);
  }

  private async load(ownerId: string, finetuneId: string, id: string): Promise<FinetunePrompt> {
    await this.finetunes.load(ownerId, finetuneId);
    const options = { within: { finetuneId }, relations: { drawing: { task: true } } } as const;
    return findOwned(this.prompts.manager, FinetunePrompt, ownerId, id, options);
  }

  /**
   * @throws UnprocessableError for weights that no longer fit; NotFoundError for a Fine-Tune deleted meanwhile; what
   * `AcceptanceService` throws
   */
  private async insert(caller: CallerKey, order: RequestedTasks<NewPrompt>, finetune: Finetune): Promise<void> {
    const base = weightsName(order.served);
    if (finetune.isStale(base)) throw new UnprocessableError('FineTuneStale', staleNote(finetune, base));
    if (order.tasks.length === 0) return;
    await this.acceptance.insert(caller, { ...order, finetunes: [finetune] }).catch((error: unknown) => {
      throw isOfRemovedFinetune(error) ? new NotFoundError('FineTune') : error;
    });
  }
}

/** The Fine-Tune existed when the request began. */
function isOfRemovedFinetune(error: unknown): boolean {
  const { code, constraint } = error as { code?: string; constraint?: string };
  return code === '23503' && constraint === 'finetune_prompts_finetune_id_fkey';
}

/** What a Prompt takes from either body as it is. */
function fieldsOfBothBodies({
  seed,
  high_resolution: highResolution,
  metadata,
  webhook,
}: CreatePromptDto | ApplyStyleDto) {
  return { seed, highResolution, metadata, webhook };
}

/** A list of one means the same as its element. */
function aspectRatioOf({ aspect_ratio: aspectRatio }: ApplyStyleDto) {
  return [aspectRatio].flat()[0];
}
