import { ApiProperty } from '@nestjs/swagger';
import type { ImageTaskKind } from '../image-tasks/image-task';
import type { WebhookDeliveryStatus } from '../webhooks/webhook-delivery';
import { webhookDeliveryStatuses } from '../webhooks/webhook-delivery';
import { WebhookAttemptDto } from '../webhooks/webhook-delivery.dto';
import { OfKey } from './of-key.dto';
import { taskKinds } from './queue.dto';

/** A delivery to the webhook of some key. */
export class KeyDeliveryDto extends OfKey {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24 })
  id: string;

  @ApiProperty({
    type: String,
    minLength: 24,
    maxLength: 24,
    description: 'The Generation or Prompt that it tells of.',
  })
  record_id: string;

  @ApiProperty({ enum: taskKinds, enumName: 'TaskKind' })
  kind: ImageTaskKind;

  @ApiProperty({
    type: String,
    description: 'Where it goes, without the path, which may be a secret of its receiver.',
    example: 'https://example.com',
  })
  receiver: string;

  @ApiProperty({ enum: [...webhookDeliveryStatuses], enumName: 'WebhookDeliveryStatus' })
  status: WebhookDeliveryStatus;

  @ApiProperty({ type: 'integer', description: 'Tries so far.', example: 1 })
  attempts: number;

  @ApiProperty({ type: WebhookAttemptDto, nullable: true, description: 'The last try; null before the first.' })
  last_attempt: WebhookAttemptDto | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'When it is tried next.' })
  next_attempt_at: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'When it succeeded or was given up.' })
  completed_at: string | null;
}
