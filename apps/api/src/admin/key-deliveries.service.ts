import { isIdentifier, NotFoundError, type WebhookDeliveryStatus, webhookDeliveryStatuses } from '@app/domain';
import type { KeyDeliveryDto } from '@app/domain/http';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { type List, listByTime, type TimedRow } from '../http/list';
import { DeliveriesService } from '../webhooks/deliveries.service';

/** Counts all deliveries, because a rank must not depend on the filter or change with the status. */
const rank = `(
  SELECT count(*)::integer FROM webhook_deliveries twin
  WHERE twin.status IN (${webhookDeliveryStatuses.map((status) => `'${status}'`).join()})
    AND twin.created_at = delivery.created_at AND twin.id < delivery.id
)`;

const lastAttempt = `(
  SELECT json_build_object('status_code', status_code, 'error', error, 'duration_ms', duration_ms, 'started_at', started_at)
  FROM webhook_attempts attempt WHERE attempt.delivery_id = delivery.id ORDER BY started_at DESC LIMIT 1
)`;

const columns = `delivery.id, delivery.owner_id AS key_id, coalesce(caller.name, '') AS key_name, task.id AS record_id, task.kind,
  delivery.url, delivery.status, delivery.attempts, ${lastAttempt} AS last_attempt, delivery.next_attempt_at,
  delivery.created_at AS at, delivery.completed_at, ${rank} AS rank`;
const joins = `JOIN tasks task ON task.id = delivery.task_id
  LEFT JOIN api_keys caller ON caller.id = delivery.owner_id`;

/**
 * Each status has its part of `webhook_deliveries_status_idx`. Parameters: how many, the time and the rank to start
 * before, the statuses.
 */
const pageStatement = `
SELECT ${columns}
FROM (
  SELECT page.* FROM unnest($4::text[]) AS wanted (status) CROSS JOIN LATERAL (
    SELECT * FROM webhook_deliveries delivery
    WHERE delivery.status = wanted.status AND delivery.created_at <= $2 AND (delivery.created_at < $2 OR ${rank} < $3)
    ORDER BY delivery.created_at DESC, delivery.id DESC LIMIT $1
  ) page
  ORDER BY page.created_at DESC, page.id DESC LIMIT $1
) delivery ${joins}
ORDER BY delivery.created_at DESC, delivery.id DESC`;

const findStatement = `SELECT ${columns} FROM webhook_deliveries delivery ${joins} WHERE delivery.id = $1`;

type Shown = Pick<
  KeyDeliveryDto,
  'key_id' | 'key_name' | 'record_id' | 'kind' | 'status' | 'attempts' | 'last_attempt'
>;
type Row = TimedRow & Shown & { url: string; next_attempt_at: Date | null; completed_at: Date | null };

/** The webhook deliveries of all keys. */
@Injectable()
export class KeyDeliveriesService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly deliveries: DeliveriesService,
  ) {}

  /** @param status of the wanted ones; all when left out */
  list(status?: WebhookDeliveryStatus): List {
    const statuses = status ? [status] : webhookDeliveryStatuses;
    return listByTime<Row>(
      ({ count, at, rank: below }) => this.dataSource.query(pageStatement, [count, at, below, statuses]),
      (id) => this.find(id),
      present,
    );
  }

  /** Tries a delivery again now, as its owner may. @throws NotFoundError */
  async redeliver(id: string): Promise<KeyDeliveryDto> {
    if (!isIdentifier(id) || !(await this.find(id))) throw new NotFoundError('Delivery');
    await this.deliveries.redeliverAny(id);
    const row = await this.find(id);
    if (!row) throw new NotFoundError('Delivery');
    return present(row);
  }

  private async find(id: string): Promise<Row | undefined> {
    return (await this.dataSource.query<Row[]>(findStatement, [id])).at(0);
  }
}

function present({ at, rank: _, url, next_attempt_at, completed_at, last_attempt, ...row }: Row): KeyDeliveryDto {
  return {
    ...row,
    receiver: new URL(url).origin,
    last_attempt: last_attempt && { ...last_attempt, started_at: new Date(last_attempt.started_at).toISOString() },
    next_attempt_at: next_attempt_at?.toISOString() ?? null,
    created_at: at.toISOString(),
    completed_at: completed_at?.toISOString() ?? null,
  };
}
