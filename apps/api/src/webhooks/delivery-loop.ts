import { WebhookDelivery } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { PollLoop } from '@app/process';
import { deliveryChannel } from '@app/tasks';
import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { Drain } from '../http/drain';
import { Notifications } from '../http/notifications';
import { ownerConcurrency, ReceiverGate } from './receiver-gate';
import { WebhooksService } from './webhooks.service';

/** Per process. */
const concurrency = 50;
/** How long others leave a claimed delivery alone: far longer than an attempt takes. */
const claimSeconds = 30;

/**
 * Claims due deliveries, the longest due of each owner: an owner with many delays nobody. The step from owner to owner
 * is one index look-up. Parameters: owners whose deliveries are not wanted, how many of one owner, how many in all.
 */
const claimStatement = `
WITH RECURSIVE owners (id) AS (
  SELECT min(owner_id) FROM webhook_deliveries WHERE status = 'pending'
  UNION ALL
  SELECT (
    SELECT owner_id FROM webhook_deliveries WHERE status = 'pending' AND owner_id > owners.id ORDER BY owner_id LIMIT 1
  ) FROM owners WHERE owners.id IS NOT NULL
),
due AS (
  SELECT delivery.id FROM owners CROSS JOIN LATERAL (
    SELECT id, next_attempt_at FROM webhook_deliveries
    WHERE owner_id = owners.id AND status = 'pending' AND next_attempt_at <= now()
      AND (claimed_until IS NULL OR claimed_until <= now())
    ORDER BY next_attempt_at LIMIT $2 FOR UPDATE SKIP LOCKED
  ) AS delivery
  WHERE owners.id <> ALL ($1) ORDER BY delivery.next_attempt_at LIMIT $3
)
UPDATE webhook_deliveries SET claimed_until = now() + interval '${claimSeconds} s'
WHERE id IN (SELECT id FROM due) RETURNING id`;

/**
 * Attempts due deliveries. All state is in their rows: a process that dies leaves its claims to the others, and a lost
 * notification costs a second.
 */
@Injectable()
export class DeliveryLoop implements OnApplicationBootstrap {
  private readonly loop = new PollLoop(
    () => this.claim(),
    ({ message }) => this.logger.warnSparingly('due webhooks could not be looked for', { reason: message }),
  );

  constructor(
    @InjectRepository(WebhookDelivery) private readonly deliveries: Repository<WebhookDelivery>,
    private readonly webhooks: WebhooksService,
    private readonly gate: ReceiverGate,
    private readonly logger: JsonLogger,
    notifications: Notifications,
    drain: Drain,
  ) {
    notifications.on(deliveryChannel, () => this.loop.wake());
    drain.onBegin(() => this.end());
  }

  onApplicationBootstrap(): void {
    this.loop.start();
  }

  /** Begins due deliveries while there are places. @returns whether there was one */
  private async claim(): Promise<boolean> {
    const free = concurrency - this.loop.tracked;
    if (free === 0) return false;
    const [claimed] = await this.deliveries.query<[{ id: string }[], number]>(claimStatement, [
      this.gate.fullOwners(),
      ownerConcurrency,
      free,
    ]);
    if (claimed.length === 0) return false;
    const where = { id: In(claimed.map(({ id }) => id)) };
    for (const delivery of await this.deliveries.find({ where, order: { nextAttemptAt: 'ASC' } })) this.begin(delivery);
    return true;
  }

  private begin(delivery: WebhookDelivery): void {
    this.loop.track(
      this.webhooks
        .attempt(delivery)
        .catch((error: Error) => this.logger.error('webhook attempt failed on our side', { id: delivery.id }, error)),
    );
  }

  /** Attempts end by themselves within a limited time. */
  private async end(): Promise<void> {
    await this.loop.stop();
    await this.loop.finished();
  }
}
