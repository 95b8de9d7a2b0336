import { limits, NotFoundError, WebhookAttempt, WebhookDelivery } from '@app/domain';
import { WebhookDeliveryDto } from '@app/domain/http';
import { announce, deliveryChannel } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Repository } from 'typeorm';
import { findOwned } from '../http/find-owned';
import { FinetunePromptsService } from '../finetunes/finetune-prompts.service';
import { GenerationsService } from '../generations/generations.service';

/** A Generation, or with its Fine-Tune a Prompt. */
export interface DeliveredRecord {
  id: string;
  finetuneId?: string;
}

/** The webhook log of a caller's Generations and Prompts. */
@Injectable()
export class DeliveriesService {
  constructor(
    @InjectRepository(WebhookDelivery) private readonly deliveries: Repository<WebhookDelivery>,
    private readonly generations: GenerationsService,
    private readonly prompts: FinetunePromptsService,
  ) {}

  /**
   * Newest first; empty if no delivery is pending or done.
   * @throws NotFoundError, also for another caller's record.
   */
  async findAll(ownerId: string, record: DeliveredRecord): Promise<WebhookDeliveryDto[]> {
    await this.assertFound(ownerId, record);
    // In one snapshot: otherwise an attempt that ends between the two reads would appear beside the previous status.
    return this.deliveries.manager.transaction('REPEATABLE READ', async (manager) => {
      const found = await manager.find(WebhookDelivery, {
        where: { taskId: record.id, ownerId },
        order: { createdAt: 'DESC', id: 'DESC' },
      });
      const shown: WebhookDeliveryDto[] = [];
      for (const delivery of found) shown.push(await present(manager, delivery));
      return shown;
    });
  }

  /**
   * Makes another attempt of a delivery now, under the same `webhook-id`, whatever its status. Scheduled attempts stay.
   * @throws NotFoundError
   */
  async redeliver(ownerId: string, record: DeliveredRecord, id: string): Promise<WebhookDeliveryDto> {
    await this.assertFound(ownerId, record);
    return this.deliveries.manager.transaction(async (manager) => {
      const options = { within: { taskId: record.id }, lock: 'pessimistic_write' } as const;
      await findOwned(manager, WebhookDelivery, ownerId, id, options);
      await tryAgain(manager, id);
      return present(manager, await manager.findOneByOrFail(WebhookDelivery, { id }));
    });
  }

  /** Sends a delivery of any key again. @throws NotFoundError */
  async redeliverAny(id: string): Promise<void> {
    await this.deliveries.manager.transaction(async (manager) => {
      const lock = { mode: 'pessimistic_write' } as const;
      if (!(await manager.findOne(WebhookDelivery, { where: { id }, lock }))) throw new NotFoundError('Delivery');
      await tryAgain(manager, id);
    });
  }

  private async assertFound(ownerId: string, { id, finetuneId }: DeliveredRecord): Promise<void> {
    if (finetuneId === undefined) await this.generations.findOne(ownerId, id);
    else await this.prompts.findDrawing(ownerId, finetuneId, id);
  }
}

/** Makes a locked delivery due now, also while an attempt is being made. */
async function tryAgain(manager: EntityManager, id: string): Promise<void> {
  const now = () => 'now()';
  const due = { status: 'pending' as const, nextAttemptAt: now, dueSince: now, askedAt: now };
  await manager.update(WebhookDelivery, { id }, { ...due, claimedUntil: null, completedAt: null });
  await announce(manager, [deliveryChannel], [id]);
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
