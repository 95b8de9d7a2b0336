import { limits, NotFoundError, WebhookAttempt, WebhookDelivery } from '@app/domain';
import { WebhookDeliveryDto } from '@app/domain/http';
import type { JobTransaction } from '@app/queue';
import { jobIdOf, Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { Repository } from 'typeorm';
import { findOwned } from '../http/find-owned';
import { GenerationsService } from '../generations/generations.service';

/** The webhook log of a caller's Generations. */
@Injectable()
export class DeliveriesService {
  constructor(
    @InjectRepository(WebhookDelivery) private readonly deliveries: Repository<WebhookDelivery>,
    private readonly generations: GenerationsService,
    private readonly transactions: Transactions,
  ) {}

  /**
   * Newest first; empty if no delivery is pending or done. @throws NotFoundError also for another caller's Generation.
   */
  async findAll(ownerId: string, generationId: string): Promise<WebhookDeliveryDto[]> {
    await this.generations.findOne(ownerId, generationId);
    // In one snapshot: otherwise an attempt that ends between the two reads would appear beside the previous status.
    return this.deliveries.manager.transaction('REPEATABLE READ', async (manager) => {
      const found = await manager.find(WebhookDelivery, {
        where: { taskId: generationId, ownerId },
        order: { createdAt: 'DESC', id: 'DESC' },
      });
      const shown: WebhookDeliveryDto[] = [];
      for (const delivery of found) shown.push(await present(manager, delivery));
      return shown;
    });
  }

  /**
   * Makes another attempt of a delivery now, under the same `webhook-id`, whatever its status; the
   * remaining attempts stay.
   * @throws NotFoundError
   */
  async redeliver(ownerId: string, generationId: string, id: string): Promise<WebhookDeliveryDto> {
    await this.generations.findOne(ownerId, generationId);
    return this.transactions.run(async (transaction) => {
      const { manager } = transaction;
      const options = { within: { taskId: generationId }, lock: 'pessimistic_write' } as const;
      await tryAgain(transaction, await findOwned(manager, WebhookDelivery, ownerId, id, options));
      return present(manager, await manager.findOneByOrFail(WebhookDelivery, { id }));
    });
  }

  /** Sends a delivery of any key again. @throws NotFoundError */
  async redeliverAny(id: string): Promise<void> {
    await this.transactions.run(async (transaction) => {
      const lock = { mode: 'pessimistic_write' } as const;
      const row = await transaction.manager.findOne(WebhookDelivery, { where: { id }, lock });
      if (!row) throw new NotFoundError('Delivery');
      await tryAgain(transaction, row);
    });
  }
}

/** Gives a delivery that the transaction has locked a job now. */
async function tryAgain(transaction: JobTransaction, { id, enqueued: before }: WebhookDelivery): Promise<void> {
  const enqueued = before + 1;
  await transaction.manager.update(
    WebhookDelivery,
    { id },
    { status: 'pending', enqueued, nextAttemptAt: new Date(), askedAt: new Date(), completedAt: null },
  );
  await transaction.enqueue('webhooks', { id: jobIdOf(id, enqueued), data: { deliveryId: id } });
}

/** With its last attempts only: a caller may request any number of them. */
async function present(manager: EntityManager, delivery: WebhookDelivery): Promise<WebhookDeliveryDto> {
  const attempts = await manager.find(WebhookAttempt, {
    where: { deliveryId: delivery.id },
    order: { startedAt: 'DESC' },
    take: limits.shownAttempts,
  });
  return WebhookDeliveryDto.from(Object.assign(delivery, { attempts }));
}
