import { ApiKey, newIdentifier, WebhookAttempt, WebhookDelivery, type WebhookDeliveryStatus } from '@app/domain';
import { JsonLogger, Metrics, requestBuckets } from '@app/observability';
import { crashPoint } from '@app/process';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { FinetunesService } from '../finetunes/finetunes.service';
import { FinetunePromptsService } from '../finetunes/finetune-prompts.service';
import { GenerationsService } from '../generations/generations.service';
import { type ReceiverAnswer, ReceiverGate } from './receiver-gate';
import { maxAttempts, nextWaitMs } from './retry-schedule';
import { type Receipt, WebhookSender } from './webhook-sender';

/** 410 Gone: the receiver wants no more of these. */
const gone = 410;
/** A delivery fails if it finds no place for this long: longer than any wait between two attempts. */
const longestWaitMs = 4 * 24 * 3_600_000;
/**
 * A delivery that is later than this became due while the service was off: otherwise it looks for a place every few
 * minutes.
 */
const lateMs = 3_600_000;

/** Makes the attempts of deliveries and keeps their log. */
@Injectable()
export class WebhooksService {
  private readonly attempts;
  private readonly seconds;

  constructor(
    @InjectRepository(WebhookDelivery) private readonly deliveries: Repository<WebhookDelivery>,
    @InjectRepository(ApiKey) private readonly apiKeys: Repository<ApiKey>,
    private readonly generations: GenerationsService,
    private readonly prompts: FinetunePromptsService,
    private readonly finetunes: FinetunesService,
    private readonly sender: WebhookSender,
    private readonly gate: ReceiverGate,
    private readonly logger: JsonLogger,
    metrics: Metrics,
  ) {
    this.attempts = metrics.counter('webhook_tries_total', {
      help: 'Webhook attempts by the status of their delivery afterwards. pending: another attempt follows; failed: it is given up.',
      labels: ['outcome'],
    });
    // Counters begin at 0: one that appears with its first failure would show no increase.
    for (const outcome of ['delivered', 'pending', 'failed']) this.attempts.inc({ outcome }, 0);
    this.seconds = metrics.histogram('webhook_try_seconds', {
      help: 'Time that receivers took to answer.',
      buckets: requestBuckets,
    });
  }

  /** Makes one attempt of a claimed delivery, or lets it wait if its receiver or its owner has no place. */
  async attempt(delivery: WebhookDelivery): Promise<void> {
    const isRedelivery = delivery.askedAt !== null;
    const entry = this.gate.enter({ host: new URL(delivery.url).host, ownerId: delivery.ownerId, isRedelivery });
    if ('waitMs' in entry) return this.postpone(delivery, entry.waitMs);
    let answer: ReceiverAnswer = 'not asked';
    try {
      const owner = await this.apiKeys.findOneBy({ id: delivery.ownerId });
      const body = owner ? await this.bodyOf(delivery, owner.accountId) : undefined;
      // Deleted meanwhile, with its deliveries.
      if (body === undefined || !owner) return;
      const startedAt = new Date();
      const receipt = await this.sender.send({
        id: delivery.id,
        ownerId: delivery.ownerId,
        url: delivery.url,
        body,
        secrets: owner.signingSecrets(),
      });
      crashPoint('after-webhook-send');
      answer = receipt.answer;
      await this.recordAttempt(delivery, startedAt, receipt);
    } finally {
      entry.leave(answer);
    }
  }

  /**
   * Lets a delivery wait for a place, or fail if it has looked for one for too long; time in which the service was off
   * does not count.
   */
  private async postpone(delivery: WebhookDelivery, waitMs: number): Promise<void> {
    const { nextAttemptAt, dueSince } = delivery;
    const isMissed = nextAttemptAt !== null && Date.now() - nextAttemptAt.getTime() > lateMs;
    const fails = !isMissed && dueSince !== null && Date.now() - dueSince.getTime() > longestWaitMs;
    await this.deliveries.update(claimOf(delivery), {
      claimedUntil: null,
      ...(isMissed && { dueSince: () => 'now()' }),
      ...(fails
        ? { status: 'failed', nextAttemptAt: null, completedAt: () => 'now()' }
        : { nextAttemptAt: inTime(waitMs) }),
    });
    if (fails) this.attempts.inc({ outcome: 'failed' });
  }

  /**
   * The record as GET returns it at the first attempt; later attempts send the same body, because receivers take the
   * same `webhook-id` for the same message. Undefined when the record was deleted.
   */
  private async bodyOf(delivery: WebhookDelivery, accountId: string): Promise<string | undefined> {
    const where = { id: delivery.id };
    const kept = await this.deliveries.findOne({ where, select: { id: true, body: true } });
    if (kept?.body != null) return kept.body;
    const record = kept && (await this.recordOf(delivery, accountId));
    if (!record) return undefined;
    const body = JSON.stringify(record);
    await this.deliveries.update(where, { body });
    return body;
  }

  private async recordOf({ taskId }: WebhookDelivery, accountId: string): Promise<object | undefined> {
    const generation = await this.generations.findForDelivery(accountId, taskId);
    const prompt = generation ? undefined : await this.prompts.findForDelivery(accountId, taskId);
    return generation ?? prompt ?? this.finetunes.findForDelivery(accountId, taskId);
  }

  private async recordAttempt(claimed: WebhookDelivery, startedAt: Date, receipt: Receipt): Promise<void> {
    const { statusCode, error, durationMs } = receipt;
    const made = await this.deliveries.manager.transaction(async (manager) => {
      const row = await manager.findOne(WebhookDelivery, {
        where: { id: claimed.id },
        lock: { mode: 'pessimistic_write' },
      });
      if (!row) return undefined;
      const attemptCount = row.attemptCount + 1;
      const attempt = { startedAt, statusCode, error, durationMs };
      await manager.insert(WebhookAttempt, { id: newIdentifier(), deliveryId: claimed.id, ...attempt });
      // Requested again meanwhile, or also made by another process: the log has both, and the later claim decides.
      const isDecided = row.status !== 'pending' || row.claimedUntil?.getTime() !== claimed.claimedUntil?.getTime();
      const { status, waitMs } = isDecided ? { status: row.status } : outcomeOf(receipt, attemptCount);
      // One update: a second one would check the foreign key to the task as well, and wait for a transaction that
      // deletes it and waits for this row.
      await manager.update(
        WebhookDelivery,
        { id: claimed.id },
        {
          attemptCount,
          ...(!isDecided && { status, claimedUntil: null, askedAt: null, nextAttemptAt: null }),
          ...(!isDecided && waitMs === undefined && { completedAt: () => 'now()' }),
          ...(waitMs !== undefined && { nextAttemptAt: inTime(waitMs), dueSince: inTime(waitMs) }),
        },
      );
      return { attemptCount, status };
    });
    if (!made) return;
    this.attempts.inc({ outcome: made.status });
    this.seconds.observe(durationMs / 1000);
    this.logger.log('webhook attempted', {
      deliveryId: claimed.id,
      taskId: claimed.taskId,
      attempt: `${made.attemptCount} of ${maxAttempts}`,
      status: made.status,
      statusCode,
      durationMs,
    });
    // Nothing else tells the operator why callers hear nothing.
    if (receipt.isRefused)
      this.logger.warnSparingly('a webhook is not delivered: WEBHOOK_ALLOW_PRIVATE is off', {
        deliveryId: claimed.id,
        host: new URL(claimed.url).host,
        reason: error ?? '',
      });
  }
}

/** The row, unless somebody else has claimed it. */
const claimOf = ({ id, claimedUntil }: WebhookDelivery) => ({
  id,
  status: 'pending' as const,
  claimedUntil: claimedUntil!,
});

/** By the database's clock, which decides what is due. */
const inTime = (ms: number) => () => `now() + ${Math.round(ms)} * interval '1 ms'`;

/** `waitMs` is undefined after the last attempt. */
function outcomeOf({ error, statusCode, retryAfterMs, isFinal }: Receipt, made: number): Outcome {
  if (error === null) return { status: 'delivered' };
  const waitMs = statusCode === gone || isFinal ? undefined : nextWaitMs(made, retryAfterMs);
  return waitMs === undefined ? { status: 'failed' } : { status: 'pending', waitMs };
}

interface Outcome {
  status: WebhookDeliveryStatus;
  waitMs?: number;
}
