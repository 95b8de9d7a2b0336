import { WebhookDelivery } from '@app/domain';
import { JOB_BACK_END } from '@app/queue';
import { RecurringService } from '@app/process';
import { JsonLogger } from '@app/observability';
import type { JobBackEnd } from '@app/queue';
import { isOpen, jobGraceMs, jobIdOf, Transactions } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThan, Repository } from 'typeorm';

const intervalMs = 15_000;

/** Makes new jobs for due deliveries that lost theirs. */
@Injectable()
export class DeliveriesSweeper extends RecurringService {
  constructor(
    @InjectRepository(WebhookDelivery) private readonly deliveries: Repository<WebhookDelivery>,
    @Inject(JOB_BACK_END) private readonly jobs: JobBackEnd,
    private readonly transactions: Transactions,
    logger: JsonLogger,
  ) {
    super(logger);
    this.repeat({
      intervalMs,
      failure: 'sweep of deliveries failed',
      work: (signal) => this.sweep(new Date(), signal),
    });
  }

  /** @returns how many deliveries got a new job. */
  async sweep(now = new Date(), signal?: AbortSignal): Promise<number> {
    const due = await this.deliveries.find({
      where: { status: 'pending', nextAttemptAt: LessThan(new Date(now.getTime() - jobGraceMs)) },
      order: { nextAttemptAt: 'ASC' },
      take: 500,
    });
    let requeued = 0;
    for (const delivery of due) {
      if (signal?.aborted) break;
      if (!isOpen(await this.jobs.presence('webhooks', jobIdOf(delivery.id, delivery.enqueued))))
        requeued += await this.requeue(delivery);
    }
    if (requeued > 0) this.logger.warn('deliveries had lost their jobs', { requeued });
    return requeued;
  }

  private requeue({ id, enqueued }: WebhookDelivery): Promise<number> {
    return this.transactions.run(async (transaction) => {
      const { affected } = await transaction.manager.update(
        WebhookDelivery,
        { id, enqueued, status: 'pending' },
        { enqueued: enqueued + 1 },
      );
      if (!affected) return 0;
      await transaction.enqueue('webhooks', { id: jobIdOf(id, enqueued + 1), data: { deliveryId: id } });
      return 1;
    });
  }
}
