import { ApiProperty } from '@nestjs/swagger';
import type { WebhookAttempt } from './webhook-attempt';
import type { WebhookDelivery, WebhookDeliveryStatus } from './webhook-delivery';
import { webhookDeliveryStatuses } from './webhook-delivery';

/** One attempt of a delivery in the webhook log. */
export class WebhookAttemptDto {
  @ApiProperty({
    type: 'integer',
    nullable: true,
    description: 'What the receiver answered; null when no answer came.',
  })
  status_code: number | null;

  @ApiProperty({ type: String, nullable: true, description: 'Why it was no success, in plain words.' })
  error: string | null;

  @ApiProperty({ type: 'integer', minimum: 0 })
  duration_ms: number;

  @ApiProperty({ type: String, format: 'date-time' })
  started_at: string;

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
  @ApiProperty({
    type: String,
    minLength: 24,
    maxLength: 24,
    description: 'Also the `webhook-id` header of every try.',
  })
  id: string;

  @ApiProperty({ type: String, format: 'iri' })
  url: string;

  @ApiProperty({ enum: [...webhookDeliveryStatuses], enumName: 'WebhookDeliveryStatus' })
  status: WebhookDeliveryStatus;

  @ApiProperty({
    type: WebhookAttemptDto,
    isArray: true,
    description: 'The last 100, in the order in which they were made.',
  })
  attempts: WebhookAttemptDto[];

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'When it is tried next.' })
  next_attempt_at: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'When it succeeded or was given up.' })
  completed_at: string | null;

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
