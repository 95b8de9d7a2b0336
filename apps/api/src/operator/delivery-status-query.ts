import type { WebhookDeliveryStatus } from '@app/domain';
import { webhookDeliveryStatuses } from '@app/domain';
import type { PipeTransform } from '@nestjs/common';
import { Query } from '@nestjs/common';
import { badParameter } from '../http/query-problems';

/** The query parameter `status` of deliveries, checked. */
export const DeliveryStatusQuery = () => Query('status', new StatusPipe());

class StatusPipe implements PipeTransform {
  /** @throws InvalidError naming the parameter. */
  transform(status: unknown): WebhookDeliveryStatus | undefined {
    const known = webhookDeliveryStatuses.find((name) => name === status);
    if (status !== undefined && !known)
      throw badParameter('status', `must be one of ${webhookDeliveryStatuses.join(', ')}`);
    return known;
  }
}
