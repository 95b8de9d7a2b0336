import { ApiKey, WebhookDelivery } from '@app/domain';
import { HttpModule } from '@nestjs/axios';
import { BullModule } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { TextToImageModule } from '../text-to-image/text-to-image.module';
import { DeliveriesSweeper } from './deliveries.sweeper';
import { WebhookSender } from './webhook-sender';
import { WebhooksProcessor } from './webhooks.processor';
import { WebhooksService } from './webhooks.service';

/** Signed, retried delivery of terminated Generations to their webhooks. */
@Module({
  imports: [
    TypeOrmModule.forFeature([WebhookDelivery, ApiKey]),
    // Without a queue of its own, for the processor only: jobs are added in transactions.
    BullModule.registerQueue(),
    HttpModule,
    TextToImageModule,
  ],
  providers: [WebhookSender, WebhooksService, WebhooksProcessor, DeliveriesSweeper],
})
export class WebhooksModule {}
