import { isIdentifier, limits, NotFoundError, WebhookAttempt, WebhookDelivery } from '@app/domain';
import { WebhookDeliveryDto } from '@app/domain/http';
import { announce, deliveryChannel } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Repository } from 'typeorm';
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
  async findAll(accountId: string, record: DeliveredRecord): Promise<WebhookDeliveryDto[]> {
    await this.assertFound(accountId, record);
    // In one snapshot: otherwise an attempt that ends between the two reads would appear beside the previous status.
    return this.deliveries.manager.transaction('REPEATABLE READ', async (manager) => {
      const found = await manager.find(WebhookDelivery, {
        where: { taskId: record.id },
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
  async redeliver(accountId: string, record: DeliveredRecord, id: string): Promise<WebhookDeliveryDto> {
    await this.assertFound(accountId, record);
    return this.deliveries.manager.transaction(async (manager) => {
      await lock(manager, { id, taskId: record.id });
      await tryAgain(manager, id);
      return present(manager, await manager.findOneByOrFail(WebhookDelivery, { id }));
    });
  }

  /** Sends a delivery of any key again. @throws NotFoundError */
  async redeliverAny(id: string): Promise<void> {
    await this.deliveries.manager.transaction(async (manager) => {
      await lock(manager, { id });
      await tryAgain(manager, id);
    });
  }

  private async assertFound(accountId: string, { id, finetuneId }: DeliveredRecord): Promise<void> {
    if (finetuneId === undefined) await this.generations.findOne(accountId, id);
    else await this.prompts.findDrawing(accountId, finetuneId, id);
  }
}

/** @throws NotFoundError */
async function lock(manager: EntityManager, where: { id: string; taskId?: string }): Promise<void> {
  const options = { where, lock: { mode: 'pessimistic_write' } } as const;
  if (!isIdentifier(where.id) || !(await manager.findOne(WebhookDelivery, options)))
    throw new NotFoundError('Delivery');
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
