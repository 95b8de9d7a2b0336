import { WordParameter } from '../fields/fields-of-queries';
import { type WebhookDelivery, type WebhookDeliveryStatus, webhookDeliveryStatuses } from './webhook-delivery';
import type { WebhookAttempt } from './webhook-attempt';
import {
  Id,
  Integer,
  IntegerOrNull,
  Parts,
  Text,
  TextOrNull,
  Time,
  TimeOrNull,
  Word,
} from '../fields/fields-of-answers';

/** Which deliveries a list is limited to. */
export class DeliveryQueryDto {
  @WordParameter({ description: 'Only those with this status.', values: webhookDeliveryStatuses })
  status?: WebhookDeliveryStatus;
}

/** One attempt of a delivery in the webhook log. */
export class WebhookAttemptDto {
  @IntegerOrNull('What the receiver answered; null when no answer came.') status_code: number | null;
  @TextOrNull('Why it was no success, in plain words.') error: string | null;
  @Integer('', { minimum: 0 }) duration_ms: number;
  @Time() started_at: string;

  static from(attempt: WebhookAttempt): WebhookAttemptDto {
    return {
      status_code: attempt.statusCode,
      error: attempt.error,
      duration_ms: attempt.durationMs,
      started_at: attempt.startedAt.toISOString(),
    };
  }
}

/** The delivery of a terminated Generation to its webhook, with every attempt so far. */
export class WebhookDeliveryDto {
  @Id('Also the `webhook-id` header of every try.') id: string;
  @Text('', { format: 'iri' }) url: string;
  @Word(webhookDeliveryStatuses, 'WebhookDeliveryStatus') status: WebhookDeliveryStatus;
  @Parts(WebhookAttemptDto, 'The last 100, in the order in which they were made.') attempts: WebhookAttemptDto[];
  @TimeOrNull('When it is tried next.') next_attempt_at: string | null;
  @Time() created_at: string;
  @TimeOrNull('When it succeeded or was given up.') completed_at: string | null;

  /** @param delivery with its attempts loaded. */
  static from(delivery: WebhookDelivery): WebhookDeliveryDto {
    return {
      id: delivery.id,
      url: delivery.url,
      status: delivery.status,
      attempts: [...delivery.attempts]
        .sort((a, b) => a.startedAt.getTime() - b.startedAt.getTime())
        .map((attempt) => WebhookAttemptDto.from(attempt)),
      next_attempt_at: delivery.nextAttemptAt?.toISOString() ?? null,
      created_at: delivery.createdAt.toISOString(),
      completed_at: delivery.completedAt?.toISOString() ?? null,
    };
  }
}
