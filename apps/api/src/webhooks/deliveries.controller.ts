import { WebhookDeliveryDto } from '@app/domain/http';
import { Controller, Get, Param, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AccountId } from '../http/caller.decorator';
import { ApiCreates, ApiFinds } from '../docs/operation';
import { DeliveriesService } from './deliveries.service';

/** Deliveries to a Generation's webhook, and redelivery. */
@ApiTags('Webhooks')
@Controller('v1/sd/text-to-image/:id/deliveries')
export class DeliveriesController {
  constructor(private readonly deliveries: DeliveriesService) {}

  @Get()
  @ApiFinds('listDeliveries', 'Read the webhook log of a Generation', {
    reply: WebhookDeliveryDto,
    replyIsArray: true,
    description: 'Empty while the Generation has not terminated, and where it has no webhook.',
  })
  findAll(@AccountId() accountId: string, @Param('id') id: string): Promise<WebhookDeliveryDto[]> {
    return this.deliveries.findAll(accountId, { id });
  }

  @Post(':delivery_id/redeliver')
  @ApiCreates('redeliver', 'Try a delivery again now', {
    reply: WebhookDeliveryDto,
    errors: [404],
    description: 'Also one that succeeded or was given up. The receiver gets the same `webhook-id`.',
  })
  redeliver(
    @AccountId() accountId: string,
    @Param('id') id: string,
    @Param('delivery_id') deliveryId: string,
  ): Promise<WebhookDeliveryDto> {
    return this.deliveries.redeliver(accountId, { id }, deliveryId);
  }
}

/** Deliveries to a Prompt's webhook, and redelivery. */
@ApiTags('Webhooks')
@Controller('v1/finetunes/:id/prompts/:prompt_id/deliveries')
export class PromptDeliveriesController {
  constructor(private readonly deliveries: DeliveriesService) {}

  @Get()
  @ApiFinds('listPromptDeliveries', 'Read the webhook log of a Prompt', {
    reply: WebhookDeliveryDto,
    replyIsArray: true,
    description: 'Empty while the Prompt has not terminated, and where it has no webhook.',
  })
  findAll(
    @AccountId() accountId: string,
    @Param('id') finetuneId: string,
    @Param('prompt_id') id: string,
  ): Promise<WebhookDeliveryDto[]> {
    return this.deliveries.findAll(accountId, { id, finetuneId });
  }

  @Post(':delivery_id/redeliver')
  @ApiCreates('redeliverPrompt', 'Try a delivery of a Prompt again now', {
    reply: WebhookDeliveryDto,
    errors: [404],
    description: 'Also one that succeeded or was given up. The receiver gets the same `webhook-id`.',
  })
  redeliver(
    @AccountId() accountId: string,
    @Param('id') finetuneId: string,
    @Param('prompt_id') id: string,
    @Param('delivery_id') deliveryId: string,
  ): Promise<WebhookDeliveryDto> {
    return this.deliveries.redeliver(accountId, { id, finetuneId }, deliveryId);
  }
}
