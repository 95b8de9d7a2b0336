import { WebhookDelivery } from '@app/domain';
import { JOB_BACK_END, RecurringService } from '@app/foundation';
import { JsonLogger } from '@app/observability';
import type { JobBackEnd } from '@app/queue';
import { isOpen, jobIdOf, Transactions } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThan, Repository } from 'typeorm';

const intervalMs = 15_000;
/** The job of a delivery that just became due may still come, because Redis gets it after the commit. */
const graceMs = 5_000;

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
      where: { status: 'pending', nextAttemptAt: LessThan(new Date(now.getTime() - graceMs)) },
      order: { nextAttemptAt: 'ASC' },
      take: 500,
    });
    let revived = 0;
    for (const delivery of due) {
      if (signal?.aborted) break;
      if (!isOpen(await this.jobs.presence('webhooks', jobIdOf(delivery.id, delivery.enqueued))))
        revived += await this.revive(delivery);
    }
    if (revived > 0) this.logger.warn('deliveries had lost their jobs', { revived });
    return revived;
  }

  private revive({ id, enqueued }: WebhookDelivery): Promise<number> {
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
