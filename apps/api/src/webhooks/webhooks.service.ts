import type { WebhookDeliveryStatus } from '@app/domain';
import { ApiKey, newIdentifier, WebhookAttempt, WebhookDelivery } from '@app/domain';
import { JsonLogger, Metrics, requestBuckets } from '@app/observability';
import { crashPoint } from '@app/process';
import type { JobData } from '@app/queue';
import { jobIdOf, Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Job } from 'bullmq';
import { MoreThanOrEqual, Repository } from 'typeorm';
import { FinetunePromptsService } from '../finetunes/finetune-prompts.service';
import { GenerationsService } from '../generations/generations.service';
import type { ReceiverAnswer } from './receiver-gate';
import { ReceiverGate } from './receiver-gate';
import { maxAttempts, nextWaitMs } from './retry-schedule';
import type { Receipt } from './webhook-sender';
import { WebhookSender } from './webhook-sender';

/** 410 Gone: the receiver wants no more of these. */
const gone = 410;
/** A delivery whose job has found no slot for so long fails: longer than any wait between two attempts. */
const longestWaitMs = 4 * 24 * 3_600_000;
/**
 * A delivery that is late by this was due while the service was off: otherwise it looks for a slot every few minutes.
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
    private readonly sender: WebhookSender,
    private readonly gate: ReceiverGate,
    private readonly transactions: Transactions,
    private readonly logger: JsonLogger,
    metrics: Metrics,
  ) {
    this.attempts = metrics.counter('webhook_tries_total', {
      help: 'Webhook attempts by the status of their delivery afterwards; pending: another attempt follows.',
      labels: ['outcome'],
    });
    this.seconds = metrics.histogram('webhook_try_seconds', {
      help: 'Time that receivers took to answer.',
      buckets: requestBuckets,
    });
  }

  /**
   * Makes one attempt of a pending delivery. One that was settled, deleted or given another job
   * meanwhile is left alone.
   * @returns `waitMs` if the receiver has no free slot: the same job must come again after that.
   */
  async attempt({ deliveryId }: JobData['webhooks'], job: DeliveryJob): Promise<{ waitMs?: number }> {
    const delivery = await this.deliveries.findOneBy({ id: deliveryId, status: 'pending' });
    if (!delivery || jobIdOf(delivery.id, delivery.enqueued) !== job.id) return {};
    const isRedelivery = await this.isRequested(delivery);
    const entry = this.gate.enter({ host: new URL(delivery.url).host, ownerId: delivery.ownerId, isRedelivery });
    if ('waitMs' in entry) return this.postpone(delivery, job, entry.waitMs);
    let answer: ReceiverAnswer = 'not asked';
    try {
      const record = await this.recordOf(delivery);
      const owner = await this.apiKeys.findOneBy({ id: delivery.ownerId });
      if (!record || !owner) return {};
      const startedAt = new Date();
      const receipt = await this.sender.send({
        id: delivery.id,
        ownerId: delivery.ownerId,
        url: delivery.url,
        body: JSON.stringify(record),
        secrets: owner.signingSecrets(),
      });
      crashPoint('after-webhook-send');
      answer = receipt.answer;
      await this.recordAttempt(delivery, startedAt, receipt);
      return {};
    } finally {
      entry.leave(answer);
    }
  }

  /** Whether somebody requested the next attempt: the row says so, because a job may be lost and made again. */
  private async isRequested({ id, askedAt }: WebhookDelivery): Promise<boolean> {
    if (askedAt === null) return false;
    const attempts = this.deliveries.manager.getRepository(WebhookAttempt);
    return !(await attempts.existsBy({ deliveryId: id, startedAt: MoreThanOrEqual(askedAt) }));
  }

  /**
   * Lets a delivery wait for a slot of its receiver, or fail if its job has waited for too long. Each attempt and each
   * request has a job of its own; what the service missed while it was off gets a new one, which may wait as long again.
   */
  private async postpone(delivery: WebhookDelivery, job: DeliveryJob, waitMs: number): Promise<{ waitMs?: number }> {
    const { id, enqueued, nextAttemptAt } = delivery;
    const now = Date.now();
    const isMissed = nextAttemptAt !== null && now - nextAttemptAt.getTime() > lateMs;
    const fails = !isMissed && now - job.timestamp > longestWaitMs;
    const change: DeliveryChange = fails
      ? { status: 'failed', nextAttemptAt: null, completedAt: new Date(now) }
      : { nextAttemptAt: new Date(now + waitMs), ...(isMissed && { enqueued: enqueued + 1 }) };
    await this.transactions.run(async (transaction) => {
      const { affected } = await transaction.manager.update(
        WebhookDelivery,
        { id, enqueued, status: 'pending' },
        change,
      );
      if (affected && isMissed)
        await transaction.enqueue('webhooks', {
          id: jobIdOf(id, enqueued + 1),
          data: { deliveryId: id },
          delayMs: waitMs,
        });
    });
    return fails || isMissed ? {} : { waitMs };
  }

  /** The record as GET returns it; undefined when it was deleted. */
  private async recordOf({ ownerId, taskId }: WebhookDelivery): Promise<object | undefined> {
    const generation = await this.generations.findForDelivery(ownerId, taskId);
    return generation ?? this.prompts.findForDelivery(ownerId, taskId);
  }

  private async recordAttempt(claimed: WebhookDelivery, startedAt: Date, receipt: Receipt): Promise<void> {
    const { statusCode, error, durationMs } = receipt;
    const made = await this.transactions.run(async (transaction) => {
      const { manager } = transaction;
      const row = await manager.findOne(WebhookDelivery, {
        where: { id: claimed.id },
        lock: { mode: 'pessimistic_write' },
      });
      if (!row) return undefined;
      const attemptCount = row.attemptCount + 1;
      const attempt = { startedAt, statusCode, error, durationMs };
      await manager.insert(WebhookAttempt, { id: newIdentifier(), deliveryId: claimed.id, ...attempt });
      // One update: a second one would check the foreign key to the task as well, and wait for a transaction that
      // deletes it and waits for this row.
      const write = (values: DeliveryChange): Promise<unknown> =>
        manager.update(WebhookDelivery, { id: claimed.id }, { attemptCount, ...values });
      // Requested again meanwhile, or also made by another process: the log has both, and the later job decides.
      if (row.enqueued !== claimed.enqueued || row.status !== 'pending') {
        await write({});
        return { attemptCount, status: row.status };
      }
      const { status, waitMs } = outcomeOf(receipt, attemptCount);
      const enqueued = row.enqueued + 1;
      await write(
        waitMs === undefined
          ? { status, nextAttemptAt: null, completedAt: new Date() }
          : { enqueued, nextAttemptAt: new Date(Date.now() + waitMs) },
      );
      if (waitMs !== undefined)
        await transaction.enqueue('webhooks', {
          id: jobIdOf(claimed.id, enqueued),
          data: { deliveryId: claimed.id },
          delayMs: waitMs,
        });
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
  }
}

/** The effect of an attempt on its delivery; `waitMs` before the next one, if there is one. */
function outcomeOf({ error, statusCode, retryAfterMs, isFinal }: Receipt, made: number): Outcome {
  if (error === null) return { status: 'delivered' };
  const waitMs = statusCode === gone || isFinal ? undefined : nextWaitMs(made, retryAfterMs);
  return waitMs === undefined ? { status: 'failed' } : { status: 'pending', waitMs };
}

/** The job that makes an attempt; its `timestamp` is when it was made, in milliseconds since the epoch. */
type DeliveryJob = Pick<Job, 'timestamp' | 'id'>;

type DeliveryChange = Partial<Pick<WebhookDelivery, 'status' | 'enqueued' | 'nextAttemptAt' | 'completedAt'>>;

interface Outcome {
  status: WebhookDeliveryStatus;
  waitMs?: number;
}
