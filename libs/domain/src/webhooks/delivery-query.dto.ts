import { WordParameter } from '../fields/fields-of-queries';
import type { WebhookDeliveryStatus } from './webhook-delivery';
import { webhookDeliveryStatuses } from './webhook-delivery';

/** Which deliveries a list is limited to. */
export class DeliveryQueryDto {
  @WordParameter({ description: 'Only those with this status.', values: webhookDeliveryStatuses })
  status?: WebhookDeliveryStatus;
}
