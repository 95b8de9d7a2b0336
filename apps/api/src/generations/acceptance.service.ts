import { type Config, CONFIG } from '@app/config';
import {
  type ApiKey,
  assertReceiverAllowed,
  FieldProblems,
  type Finetune,
  picturesIn,
  picturesToLearn,
  pointerToField,
  readSandboxOrder,
  refusedAddress,
  refusedHost,
  TooManyError,
  UnauthorizedError,
  UnprocessableError,
  usualCaption,
} from '@app/domain';
import type { InstalledModel } from '@app/model-store';
import {
  type Audited,
  countQueued,
  type NewTask,
  type NewTraining,
  storageOfAll,
  StorageQuota,
  TaskIntake,
} from '@app/tasks';
import { findOwnPicture } from '@app/pictures';
import { Transactions } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import type { CallerKey } from '../http/caller.decorator';
import { ModerationService } from './moderation.service';
import { PromptLengths } from '../models/prompt-lengths.service';

/** A new task as a request asks for it. */
export type RequestedTask = Omit<NewTask, 'sandbox' | 'promptChunks'>;

/** Content of one request. */
export interface RequestedTasks<T extends RequestedTask> {
  served: InstalledModel;
  tasks: readonly T[];
  /** JSON pointer to the element of the body that asks for a task. */
  pointerTo: (index: number) => string;
  /** To the field with a task's text; by default beside `pointerTo`. */
  textPointerTo?: (index: number, field: string) => string;
  /** Their tokens may stand in the texts. */
  finetunes?: readonly Finetune[];
  training?: Omit<NewTraining, 'sandbox'>;
  /** Whether `assertWanted` has let its texts pass. */
  isWanted?: boolean;
}

/** Texts of one request. */
interface RequestedTexts extends Pick<RequestedTasks<RequestedTask>, 'training'> {
  tasks: readonly Audited[];
  textPointerTo: (index: number, field: string) => string;
}

class QueueFullError extends TooManyError {
  constructor(max: number, queued: number, added: number, retryAfterSeconds = 10) {
    super(
      'QueueFull',
      `This API key may have ${max} Generations and Prompts waiting; ${queued} are, and this would add ${added}.`,
      retryAfterSeconds,
    );
  }
}

/** Decides whether a caller may have more tasks, and who draws them. */
@Injectable()
export class AcceptanceService {
  constructor(
    private readonly intake: TaskIntake,
    private readonly transactions: Transactions,
    private readonly quota: StorageQuota,
    private readonly lengths: PromptLengths,
    private readonly moderation: ModerationService,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** @throws UnprocessableError for a webhook at a literal private address */
  assertReceiversAllowed(bodies: readonly { webhook?: string | null }[], pointerTo: (index: number) => string): void {
    for (const [index, { webhook }] of bodies.entries())
      assertReceiverAllowed(webhook, this.config.webhookAllowPrivate, `${pointerTo(index)}/webhook`);
  }

  /**
   * Refuses too many tasks before work is done for them; `insert` decides.
   * @throws UnprocessableError for more than may ever wait; QueueFullError for more than may wait now.
   */
  async assertQueueRoom({ id, maxQueued }: ApiKey, count: number): Promise<void> {
    const cap = maxQueued ?? this.config.maxQueuedPerKey;
    if (cap === 0 || count <= 1) return;
    assertPossible(count, cap);
    const [{ queued }] = await this.transactions.query<{ queued: number }>({
      name: 'count-queued',
      text: `SELECT ${countQueued} AS queued`,
      values: [id, cap],
    });
    if (queued + count > cap) throw new QueueFullError(cap, queued, count);
  }

  /**
   * Checks everything that can be checked first, then writes all tasks of a request and their records, or none.
   * @returns the tasks as they are written
   * @throws UnprocessableError for a full storage, a picture at a literal private address, or a text that is
   * too long or refused;
   * InvalidError for an order that a sandbox cannot follow; UnauthorizedError for a key that was revoked meanwhile;
   * QueueFullError if the key would exceed its limit of waiting tasks, whatever else is being written.
   */
  async insert<T extends RequestedTask>(
    { id: ownerId, accountId, maxQueued, storage, sandbox }: CallerKey,
    order: RequestedTasks<T>,
  ) {
    const { served, tasks: asked, pointerTo, finetunes, training } = order;
    const { textPointerTo = (index: number, field: string) => `${pointerTo(index)}/${field}` } = order;
    const trained = training && { training: { ...training, sandbox } };
    const { reservedBytes, recordBytes } = storageOfAll({ tasks: asked, ...trained });
    this.quota.assertRoom(storage, { bytes: reservedBytes + recordBytes });
    const problems = new FieldProblems();
    if (sandbox && training) readSandboxOrder(training.finetune.metadata, '/metadata', problems);
    for (const [index, { generation, finetunePrompt }] of asked.entries()) {
      const { metadata } = generation ?? finetunePrompt ?? {};
      if (sandbox) readSandboxOrder(metadata, `${pointerTo(index)}/metadata`, problems);
    }
    problems.throwIfAny();
    await this.assertPicturesAllowed(accountId, order);
    const chunks = await this.lengths.check(ownerId, served, asked, textPointerTo, finetunes);
    if (!order.isWanted) await this.assertWanted(ownerId, { ...order, textPointerTo });
    const tasks = asked.map((task, index) => ({ ...task, sandbox, promptChunks: chunks[index] }));
    const cap = maxQueued ?? this.config.maxQueuedPerKey;
    const count = tasks.length + (training ? 1 : 0);
    assertPossible(count, cap);
    const { publicUrl } = this.config;
    const caller = { ownerId, accountId, maxQueued: cap, storage };
    const outcome = await this.intake.insert({ ...caller, tasks, publicUrl, ...trained });
    if (outcome.accepted) return tasks;
    if (outcome.revoked) throw new UnauthorizedError();
    throw new QueueFullError(cap, outcome.queued, count);
  }

  /**
   * Looks at all texts that are drawn. It may wait for another server, which no transaction may do.
   * @throws UnprocessableError, ServiceUnavailableError as `ModerationService.check` does
   */
  async assertWanted(ownerId: string, { tasks, training, textPointerTo }: RequestedTexts): Promise<void> {
    const texts = [
      // As it was sent, too: a token that is written before a name parts words.
      ...tasks.flatMap(({ prompt, finetunePrompt }, index) =>
        [...new Set([finetunePrompt?.prompt ?? prompt, prompt])].map((text) => ({
          text,
          pointer: textPointerTo(index, 'prompt'),
        })),
      ),
      ...(training ? textsOf(training) : []),
    ];
    await this.moderation.check(ownerId, texts).catch(async (error: unknown) => {
      if (error instanceof UnprocessableError) await this.intake.noteRefused({ tasks, training }, error.message);
      throw error;
    });
  }

  /** @throws UnprocessableError for pictures at literal private addresses that are not the service's own */
  private async assertPicturesAllowed(
    accountId: string,
    { tasks, training, pointerTo }: RequestedTasks<RequestedTask>,
  ): Promise<void> {
    const { picturesAllowPrivate, publicUrl } = this.config;
    if (picturesAllowPrivate) return;
    const places = [
      { pictures: picturesToLearn(training?.training.imagesUrl ?? []), at: '' },
      ...tasks.map(({ inputs }, index) => ({ pictures: picturesIn(inputs), at: pointerTo(index) })),
    ];
    const named = places.flatMap(({ pictures, at }) =>
      pictures.map(({ url, field }) => ({ url, pointer: at + pointerToField(field) })),
    );
    const fields = [];
    for (const { url, pointer } of named)
      if (
        refusedHost(url) &&
        (await findOwnPicture(this.transactions.manager, publicUrl, { accountId, url })) === undefined
      )
        fields.push({ pointer, message: `must not be at ${refusedAddress}` });
    if (fields.length === 0) return;
    const message = `The picture in "${fields[0].pointer}" is at ${refusedAddress}, from which nothing is fetched unless the operator sets PICTURES_ALLOW_PRIVATE. Name a picture of this service by its URL as it was given to you; upload any other to /v1/uploads.`;
    throw new UnprocessableError('PictureAddressRefused', message, fields);
  }
}

/** @throws UnprocessableError for more tasks than a key may ever have waiting; 0: no limit */
function assertPossible(count: number, cap: number): void {
  if (cap === 0 || count <= cap) return;
  throw new UnprocessableError(
    'TooManyPrompts',
    `This API key may have ${cap} Generations, Prompts and trainings waiting, so a request for ${count} can never succeed.`,
  );
}

/** Samples of a training show its usual caption, whatever its captions are. */
const textsOf = ({ finetune, training: { captions, imagesUrl } }: Omit<NewTraining, 'sandbox'>) => [
  ...(imagesUrl.length > 0 ? [{ text: usualCaption(finetune), pointer: '/name' }] : []),
  ...(captions ?? []).map((text, index) => ({ text, pointer: `/captions/${index}` })),
];
