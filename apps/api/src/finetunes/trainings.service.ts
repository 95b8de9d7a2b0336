import { randomInt } from 'node:crypto';
import {
  ConflictError,
  defaults,
  defaultTrainingSteps,
  Finetune,
  invalidAt,
  InvalidError,
  limits,
  newIdentifier,
  problemAt,
  UnprocessableError,
} from '@app/domain';
import type { CreateFinetuneDto, FinetuneDto } from '@app/domain/http';
import type { InstalledModel } from '@app/model-store';
import { Tasks, trainingFolder, Trainings } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { AcceptanceService } from '../generations/acceptance.service';
import type { CallerKey } from '../http/caller.decorator';
import { assertReadsPictures } from '../models/assert-drawable';
import { ModelsService } from '../models/models.service';
import { PromptLengths } from '../models/prompt-lengths.service';
import { StoredFiles } from '../files/stored-files';
import { FetchedWeights } from './fetched-weights.service';
import { FinetunesService } from './finetunes.service';
import { PromptOrders, requestOf } from './prompt-orders.service';

/** Fields of a Fine-Tune's body that only a training has. */
const trainingFields = ['captions', 'steps', 'seed'] as const;
/** Those of any Fine-Tune that has to wait for its weights. */
const waitingFields = ['webhook', 'user', 'prompts', 'styles'] as const;

/** How a caller's Fine-Tunes come by their weights: they are trained, or fetched. */
@Injectable()
export class TrainingsService {
  constructor(
    private readonly finetunes: FinetunesService,
    private readonly acceptance: AcceptanceService,
    private readonly orders: PromptOrders,
    private readonly models: ModelsService,
    private readonly lengths: PromptLengths,
    private readonly tasks: Tasks,
    private readonly trainings: Trainings,
    private readonly files: StoredFiles,
    private readonly fetched: FetchedWeights,
  ) {}

  /**
   * Registers a Fine-Tune, has it trained if there are pictures, or has its weights fetched. Its Prompts are made with
   * it, or nothing is.
   * @throws InvalidError for too few pictures or captions; UnprocessableError for a model that is not installed or
   * cannot be trained, or for captions that are too long; what `PromptOrders` and `AcceptanceService` throw
   */
  async create(caller: CallerKey, dto: CreateFinetuneDto): Promise<FinetuneDto> {
    refuseIncomplete(dto);
    const served = await this.models.served(dto.model ?? defaults.model, '/model');
    const finetune = newFinetune(caller.id, dto);
    const { images_url: imagesUrl, weights_url: weightsUrl, captions = null, webhook = null, user = null } = dto;
    if (!imagesUrl && !weightsUrl) {
      await this.finetunes.register(finetune);
      return this.finetunes.findOne(caller.accountId, finetune.id);
    }
    if (imagesUrl) assertReadsPictures(await this.models.trainedFor(served), ['/images_url']);
    if (weightsUrl) this.fetched.assertAllowed(weightsUrl);
    this.acceptance.assertReceiversAllowed([{ webhook }], () => '');
    if (captions) await this.lengths.checkCaptions(caller.id, served, captions);
    const { createdAt } = finetune;
    const theirs = <T extends { user?: string | null }>(each: T): T => ({ ...each, user: each.user ?? user });
    const [askedPrompts, askedStyles] = [dto.prompts?.map(theirs), dto.styles?.map(theirs)];
    const prompts =
      askedPrompts && (await this.orders.ofPrompts(caller, finetune, askedPrompts, '/prompts', createdAt));
    const styles = askedStyles && (await this.orders.ofStyles(caller, finetune, askedStyles, '/styles', createdAt));
    const training = {
      ...{ captions, webhook, imagesUrl: imagesUrl ?? [] },
      ...{ weightsUrl: weightsUrl ?? null, weightsSha256: dto.weights_sha256?.toLowerCase() ?? null },
      ...(imagesUrl ? howTrained(dto, served, imagesUrl.length) : { steps: 0, seed: 0 }),
    };
    await this.acceptance.insert(caller, {
      served,
      training: { finetune, endUser: user, training },
      ...requestOf([...(prompts?.asked ?? []), ...(styles?.asked ?? [])]),
    });
    const made = await this.finetunes.findOne(caller.accountId, finetune.id);
    // A worker may have begun since; the answer shows the record as it was made.
    return made.status === 'training' ? { ...made, status: 'queued' } : made;
  }

  /** @throws ConflictError when nothing is under way; one that is already canceled stays canceled. */
  async cancel(accountId: string, id: string): Promise<FinetuneDto> {
    const before = await this.finetunes.findOne(accountId, id);
    const canceled = await this.tasks.cancel(id);
    if (canceled) await this.files.removeAll([trainingFolder(id), ...(await this.trainings.dropPictures(id))]);
    const finetune = canceled ? await this.finetunes.findOne(accountId, id) : before;
    if (finetune.status !== 'canceled')
      throw new ConflictError(
        'TrainingTerminated',
        `The Fine-Tune is ${finetune.status}: it is neither trained nor are its weights fetched, so there is nothing to cancel.`,
      );
    return finetune;
  }
}

function howTrained({ steps, seed }: CreateFinetuneDto, { defaults: { training } }: InstalledModel, pictures: number) {
  return {
    steps: steps ?? training?.steps ?? defaultTrainingSteps(pictures),
    seed: seed ?? randomInt(0, limits.seed + 1),
  };
}

function newFinetune(ownerId: string, dto: CreateFinetuneDto): Finetune {
  return Object.assign(new Finetune(), {
    id: newIdentifier(),
    ownerId,
    name: dto.name,
    title: dto.title ?? null,
    token: dto.token ?? defaults.token,
    model: dto.model ?? defaults.model,
    metadata: dto.metadata ?? null,
    weightsBase: null,
    createdAt: new Date(),
  });
}

/** @throws InvalidError for too few pictures; UnprocessableError for fields that do not go together */
function refuseIncomplete(dto: CreateFinetuneDto): void {
  const { images_url: urls, captions } = dto;
  const { min } = limits.trainingImages;
  const isGiven = (field: keyof CreateFinetuneDto): boolean => dto[field] !== undefined && dto[field] !== null;
  if (urls && isGiven('weights_url'))
    throw invalidAt('/weights_url', 'cannot be sent with "images_url": a Fine-Tune is trained, or has weights');
  if (isGiven('weights_sha256') && !isGiven('weights_url'))
    throw invalidAt('/weights_url', 'is required, because "weights_sha256" is of the file there');
  const needing = [...trainingFields, ...(isGiven('weights_url') ? [] : waitingFields)].find(isGiven);
  if (!urls && needing)
    throw new UnprocessableError(
      'FineTuneImagesMissing',
      ...problemAt('/images_url', `is required, because "${needing}" is of a training`),
    );
  if (urls && urls.length < min)
    throw new InvalidError(
      urls.length === 0 ? 'FineTuneImagesMissing' : 'FineTuneImagesNotEnough',
      ...problemAt('/images_url', `must have at least ${min} elements, got ${urls.length}`),
    );
  const different = new Set(urls).size;
  if (urls && different < min)
    throw new InvalidError(
      'FineTuneImagesNotEnough',
      ...problemAt('/images_url', `must name at least ${min} different pictures, got ${different}`),
    );
  if (urls && captions && captions.length !== urls.length)
    throw new UnprocessableError(
      'FineTuneCaptionsMismatch',
      ...problemAt('/captions', `must have ${urls.length} elements, as "images_url" has, got ${captions.length}`),
    );
}
