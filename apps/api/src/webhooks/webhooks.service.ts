import { crashPoint } from '@app/config';
import { ApiKey, newIdentifier, WebhookAttempt, WebhookDelivery } from '@app/domain';
import { JsonLogger } from '@app/logging';
import { jobIdOf, Transactions } from '@app/queue';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { TextToImageService } from '../text-to-image/text-to-image.service';
import { maxTries, nextWaitMs } from './retry-schedule';
import type { Receipt } from './webhook-sender';
import { WebhookSender } from './webhook-sender';

/** The receiver wants no more of these. */
const gone = 410;

/** Makes the tries of deliveries and keeps their log. */
@Injectable()
export class WebhooksService {
  constructor(
    @InjectRepository(WebhookDelivery) private readonly deliveries: Repository<WebhookDelivery>,
    @InjectRepository(ApiKey) private readonly apiKeys: Repository<ApiKey>,
    private readonly textToImage: TextToImageService,
    private readonly sender: WebhookSender,
    private readonly transactions: Transactions,
    private readonly logger: JsonLogger,
  ) {}

  /** One try of a pending delivery. What has been settled or deleted meanwhile is left alone. */
  async attempt(deliveryId: string): Promise<void> {
    const delivery = await this.deliveries.findOneBy({ id: deliveryId, status: 'pending' });
    if (!delivery) return;
    const record = await this.textToImage.findForDelivery(delivery.generationId);
    const owner = await this.apiKeys.findOneBy({ id: delivery.ownerId });
    if (!record || !owner) return;
    const startedAt = new Date();
    const receipt = await this.sender.send({
      id: delivery.id,
      url: delivery.url,
      body: JSON.stringify(record),
      secrets: [owner.webhookSecret],
    });
    crashPoint('after-webhook-send');
    await this.log(delivery, startedAt, receipt);
  }

  private async log(seen: WebhookDelivery, startedAt: Date, receipt: Receipt): Promise<void> {
    const delivered = receipt.error === null;
    const made = seen.attemptCount + 1;
    const wait = delivered || receipt.statusCode === gone ? undefined : nextWaitMs(made, receipt.retryAfterMs);
    const status = delivered ? 'delivered' : wait === undefined ? 'failed' : 'pending';
    await this.transactions.run(async (transaction) => {
      const { manager } = transaction;
      const enqueued = seen.enqueued + (wait === undefined ? 0 : 1);
      const { affected } = await manager.update(
        WebhookDelivery,
        { id: seen.id, status: 'pending', attemptCount: seen.attemptCount, enqueued: seen.enqueued },
        {
          status,
          attemptCount: made,
          enqueued,
          nextAttemptAt: wait === undefined ? null : new Date(Date.now() + wait),
          completedAt: status === 'pending' ? null : new Date(),
        },
      );
      // Another process made this try as well, or the record is gone: its log is the one that counts.
      if (!affected) return;
      const { statusCode, error, durationMs } = receipt;
      await manager.insert(WebhookAttempt, {
        id: newIdentifier(),
        deliveryId: seen.id,
        startedAt,
        statusCode,
        error,
        durationMs,
      });
      if (wait !== undefined)
        await transaction.enqueue('webhooks', {
          id: jobIdOf(seen.id, enqueued),
          data: { deliveryId: seen.id },
          delayMs: wait,
        });
    });
    this.logger.log('webhook tried', {
      deliveryId: seen.id,
      generationId: seen.generationId,
      try: `${made} of ${maxTries}`,
      status,
      statusCode: receipt.statusCode,
      durationMs: receipt.durationMs,
    });
  }
}
