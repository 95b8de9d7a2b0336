import { ApiKey, WebhookDelivery } from '@app/domain';
import { HttpModule } from '@nestjs/axios';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { TextToImageModule } from '../text-to-image/text-to-image.module';
import { DeliveriesSweeper } from './deliveries.sweeper';
import { WebhookSender } from './webhook-sender';
import { WebhooksProcessor } from './webhooks.processor';
import { WebhooksService } from './webhooks.service';

/** Signed, retried delivery of terminated Generations to their webhooks. */
@Module({
  imports: [TypeOrmModule.forFeature([WebhookDelivery, ApiKey]), HttpModule, TextToImageModule],
  providers: [WebhookSender, WebhooksService, WebhooksProcessor, DeliveriesSweeper],
})
export class WebhooksModule {}
