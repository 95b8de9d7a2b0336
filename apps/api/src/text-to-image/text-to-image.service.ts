import { randomInt } from 'node:crypto';
import type { Config } from '@app/config';
import { crashPoint } from '@app/config';
import type { CreateGenerationDto } from '@app/domain';
import {
  ConflictError,
  defaults,
  Generation,
  GenerationDto,
  ImageTask,
  isIdentifier,
  limits,
  newIdentifier,
  NotFoundError,
} from '@app/domain';
import { ImageTaskLifeCycle, Transactions } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { AdmissionService } from '../admission/admission.service';
import { CONFIG } from '../config.token';
import { ModelsService } from '../models/models.service';
import { PromptLengths } from '../models/prompt-lengths.service';
import { ImageUrls } from '../records/image-urls';
import type { List } from '../records/list';
import { listOf } from '../records/list';
import { StoredFiles } from '../records/stored-files';
import { assertReceiverAllowed } from '../webhooks/receiver-address';

/** A caller's Generations. */
@Injectable()
export class TextToImageService {
  constructor(
    @InjectRepository(Generation) private readonly generations: Repository<Generation>,
    private readonly transactions: Transactions,
    private readonly lifeCycle: ImageTaskLifeCycle,
    private readonly admissions: AdmissionService,
    private readonly models: ModelsService,
    private readonly lengths: PromptLengths,
    private readonly urls: ImageUrls,
    private readonly files: StoredFiles,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Stores the request with every default resolved and the seed chosen, together with its job. */
  async create(ownerId: string, dto: CreateGenerationDto): Promise<GenerationDto> {
    assertReceiverAllowed(dto.webhook, this.config.webhookAllowPrivate);
    const model = dto.model ?? defaults.model;
    const served = await this.models.served(model, '/model');
    const id = newIdentifier();
    const task = {
      id,
      kind: 'generation',
      ownerId,
      finetuneId: null,
      prompt: dto.prompt,
      negativePrompt: dto.negative_prompt ?? null,
      cfg: dto.cfg ?? defaults.cfg,
      steps: dto.steps ?? defaults.steps,
      seed: dto.seed ?? randomInt(0, limits.seed + 1),
      scheduler: dto.scheduler ?? null,
      model,
      aspectRatio: dto.aspect_ratio ?? defaults.aspectRatio,
      highResolution: dto.high_resolution ?? defaults.highResolution,
      outputFormat: dto.output_format ?? 'png',
      promptWeighting: dto.prompt_weighting ?? false,
      numImages: dto.num_generations ?? defaults.numGenerations,
      status: 'queued',
      createdAt: new Date(),
    } as const;
    const [promptChunks] = await this.lengths.check(served, [task], (_, field) => `/${field}`);
    await this.transactions.run(async (transaction) => {
      const order = { metadata: dto.metadata, pointer: '/metadata' };
      const [{ sandbox, delayMs }] = await this.admissions.admit(transaction.manager, ownerId, [order]);
      await transaction.manager.insert(ImageTask, { ...task, promptChunks, sandbox });
      await transaction.manager.insert(Generation, {
        id,
        ownerId,
        webhook: dto.webhook ?? null,
        metadata: (dto.metadata ?? null) as never,
      });
      await this.lifeCycle.enqueue(transaction, [{ ...task, sandbox, delayMs }]);
    });
    crashPoint('after-insert');
    return this.findOne(ownerId, id);
  }

  /** @throws NotFoundError also for another caller's. */
  async findOne(ownerId: string, id: string): Promise<GenerationDto> {
    const generation = await this.load(ownerId, id);
    return this.present(generation);
  }

  list(ownerId: string): List {
    const query = this.generations
      .createQueryBuilder('generation')
      .innerJoinAndSelect('generation.task', 'task')
      .where('generation.owner_id = :ownerId', { ownerId });
    return listOf(query, async (rows) => {
      const urls = await this.urls.ofTasks(rows.map(({ id }) => id));
      return rows.map((row) => GenerationDto.from(row, urls.get(row.id) ?? []));
    });
  }

  /** @throws ConflictError when it has succeeded or failed; one that is canceled already stays so. */
  async cancel(ownerId: string, id: string): Promise<GenerationDto> {
    await this.load(ownerId, id);
    const outcome = await this.transactions.run((transaction) => this.lifeCycle.cancel(transaction, id));
    const generation = await this.load(ownerId, id);
    if (!outcome?.canceled && generation.task.status !== 'canceled')
      throw new ConflictError(
        'GenerationTerminated',
        `The Generation has ${generation.task.status} and cannot be canceled.`,
      );
    return this.present(generation);
  }

  /** Cancels it if it has not finished, and removes its row and its pictures. */
  async remove(ownerId: string, id: string): Promise<void> {
    await this.load(ownerId, id);
    await this.transactions.run((transaction) => this.lifeCycle.remove(transaction, id));
    await this.files.removeAll([id]);
  }

  /** The record as GET returns it, for a webhook; undefined when it is gone. */
  async findForDelivery(id: string): Promise<GenerationDto | undefined> {
    const generation = await this.generations.findOne({ where: { id }, relations: { task: true } });
    return generation ? this.present(generation) : undefined;
  }

  private async load(ownerId: string, id: string): Promise<Generation> {
    const found =
      isIdentifier(id) && (await this.generations.findOne({ where: { id, ownerId }, relations: { task: true } }));
    if (!found) throw new NotFoundError('Generation');
    return found;
  }

  private async present(generation: Generation): Promise<GenerationDto> {
    const urls = await this.urls.ofTasks([generation.id]);
    return GenerationDto.from(generation, urls.get(generation.id) ?? []);
  }
}
