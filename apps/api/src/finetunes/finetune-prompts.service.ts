import {
  ConflictError,
  type Drawing,
  type Finetune,
  FinetunePrompt,
  NotFoundError,
  UnprocessableError,
} from '@app/domain';
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
import { AcceptanceService } from '../generations/acceptance.service';
import type { CallerKey } from '../http/caller.decorator';
import { findOwned } from '../http/find-owned';
import { FinetunesService } from './finetunes.service';
import { ImageUrls } from '../files/image-urls';
import { filterTasks, type List, listOf } from '../http/list';
import { StoredFiles } from '../files/stored-files';
import { type AskedPrompts, PromptOrders, requestOf } from './prompt-orders.service';

/** The Prompts of a caller's Fine-Tunes. */
@Injectable()
export class FinetunePromptsService {
  constructor(
    @InjectRepository(FinetunePrompt) private readonly prompts: Repository<FinetunePrompt>,
    private readonly finetunes: FinetunesService,
    private readonly transactions: Transactions,
    private readonly tasks: Tasks,
    private readonly acceptance: AcceptanceService,
    private readonly orders: PromptOrders,
    private readonly urls: ImageUrls,
    private readonly files: StoredFiles,
  ) {}

  /**
   * Creates one Prompt per element, all or none, in the order of the input; the last is the newest.
   * @throws NotFoundError for the Fine-Tune; what `PromptOrders` throws
   */
  async create(caller: CallerKey, finetuneId: string, dtos: readonly CreatePromptDto[]): Promise<CreatedPromptDto[]> {
    const finetune = await this.finetunes.load(caller.accountId, finetuneId);
    const { served, asked } = await this.orders.ofPrompts(caller, finetune, dtos);
    await this.insert(caller, finetune, { served, asked });
    return asked.map(({ prompt: { id, finetunePrompt, createdAt, ...drawing } }) =>
      CreatedPromptDto.from({ id, ...finetunePrompt, drawing: { ...drawing, task: { error: null, createdAt } } }),
    );
  }

  /**
   * Creates one Prompt per Style of each element, in the order of the input and of the Collections.
   * @throws NotFoundError for the Fine-Tune; what `PromptOrders` throws
   */
  async applyStyles(
    caller: CallerKey,
    finetuneId: string,
    dtos: readonly ApplyStyleDto[],
  ): Promise<PartialPromptDto[]> {
    const finetune = await this.finetunes.load(caller.accountId, finetuneId);
    const { served, asked } = await this.orders.ofStyles(caller, finetune, dtos);
    await this.insert(caller, finetune, { served, asked });
    return asked.map(({ dto, prompt: { id, createdAt } }) => ({
      ...{ id, error_message: null, images: [], created_at: createdAt.toISOString() },
      ...echoOf(dto),
    }));
  }

  /** @throws NotFoundError for the Fine-Tune. */
  async list(accountId: string, finetuneId: string, filter: TaskQueryDto): Promise<List> {
    await this.finetunes.load(accountId, finetuneId);
    const query = this.prompts
      .createQueryBuilder('prompt')
      .innerJoinAndSelect('prompt.drawing', 'drawing')
      .innerJoinAndSelect('drawing.task', 'task')
      .where('prompt.account_id = :accountId AND prompt.finetune_id = :finetuneId', { accountId, finetuneId });
    return listOf(
      query,
      (rows) => this.present(rows),
      (rows) => filterTasks(rows, filter),
    );
  }

  /** @throws NotFoundError for the Fine-Tune, else for the Prompt. */
  async findOne(accountId: string, finetuneId: string, id: string): Promise<PromptDto> {
    const [prompt] = await this.present([await this.load(accountId, finetuneId, id)]);
    return prompt;
  }

  /**
   * The Prompt with its status, as its event stream and its cancellation end.
   * @throws NotFoundError for the Fine-Tune, else for the Prompt.
   */
  async findTerminated(accountId: string, finetuneId: string, id: string): Promise<TerminatedPromptDto> {
    const prompt = await this.load(accountId, finetuneId, id);
    const urls = await this.urls.ofTasks([id]);
    return TerminatedPromptDto.ended(prompt, urls.get(id)!);
  }

  /** @throws ConflictError when it has succeeded or failed; one that is already canceled stays canceled. */
  async cancel(accountId: string, finetuneId: string, id: string): Promise<TerminatedPromptDto> {
    await this.load(accountId, finetuneId, id);
    const canceled = await this.tasks.cancel(id);
    const prompt = await this.findTerminated(accountId, finetuneId, id);
    if (!canceled && prompt.status !== 'canceled')
      throw new ConflictError('PromptTerminated', `The Prompt has ${prompt.status} and cannot be canceled.`);
    return prompt;
  }

  /** The Prompt's drawing and thumbnail. @throws NotFoundError for the Fine-Tune, else for the Prompt. */
  async findDrawing(
    accountId: string,
    finetuneId: string,
    id: string,
  ): Promise<{ drawing: Drawing; thumbnail: string | null }> {
    const { drawing } = await this.load(accountId, finetuneId, id);
    return { drawing, thumbnail: (await this.urls.ofTasks([id])).get(id)!.thumbnail };
  }

  /** The record as GET returns it, for a webhook; undefined when it was deleted. */
  async findForDelivery(accountId: string, id: string): Promise<PromptDto | undefined> {
    const prompt = await this.prompts.findOne({ where: { id, accountId }, relations: { drawing: { task: true } } });
    return prompt ? (await this.present([prompt]))[0] : undefined;
  }

  /**
   * Cancels it if it has not terminated, and deletes its row and its pictures; Styles made from it keep its thumbnail.
   */
  async remove(accountId: string, finetuneId: string, id: string): Promise<void> {
    await this.finetunes.load(accountId, finetuneId);
    const within = { finetuneId };
    await this.transactions.run(async (manager) => {
      const lock = 'pessimistic_write';
      await findOwned(manager, FinetunePrompt, accountId, id, { within, lock });
      await this.tasks.removeAll(manager, [id]);
    });
    await this.files.removeTasks([id]);
  }

  private async present(prompts: readonly FinetunePrompt[]): Promise<PromptDto[]> {
    const urls = await this.urls.ofTasks(prompts.map(({ id }) => id));
    return prompts.map((prompt) => PromptDto.from(prompt, urls.get(prompt.id)!.images));
  }

  private async load(accountId: string, finetuneId: string, id: string): Promise<FinetunePrompt> {
    await this.finetunes.load(accountId, finetuneId);
    const options = { within: { finetuneId }, relations: { drawing: { task: true } } } as const;
    return findOwned(this.prompts.manager, FinetunePrompt, accountId, id, options);
  }

  /**
   * @throws UnprocessableError for weights that no longer fit; NotFoundError for a Fine-Tune deleted meanwhile; what
   * `AcceptanceService` throws
   */
  private async insert(caller: CallerKey, finetune: Finetune, { served, asked }: AskedPrompts): Promise<void> {
    const base = weightsName(served);
    if (finetune.isStale(base)) throw new UnprocessableError('FineTuneStale', staleNote(finetune, base));
    if (asked.length === 0) return;
    await this.acceptance
      .insert(caller, { served, finetunes: [finetune], ...requestOf(asked) })
      .catch((error: unknown) => {
        throw isOfRemovedFinetune(error) ? new NotFoundError('FineTune') : error;
      });
  }
}

/** What was sent, as it was sent, of the fields that a Prompt has; its status tells the others. */
function echoOf(dto: ApplyStyleDto): Pick<PartialPromptDto, (typeof echoed)[number]> {
  return Object.fromEntries(echoed.flatMap((field) => (field in dto ? [[field, dto[field]]] : [])));
}
const echoed = ['seed', 'high_resolution', 'aspect_ratio', 'width', 'height', 'metadata'] as const;

/** The Fine-Tune existed when the request began. */
function isOfRemovedFinetune(error: unknown): boolean {
  const { code, constraint } = error as { code?: string; constraint?: string };
  return code === '23503' && constraint === 'finetune_prompts_finetune_id_fkey';
}
