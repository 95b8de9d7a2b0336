import { ApiKey, WebhookDelivery } from '@app/domain';
import { HttpModule } from '@nestjs/axios';
import { BullModule } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { FinetunePromptsModule } from '../finetunes/finetune-prompts.module';
import { TextToImageModule } from '../generations/text-to-image.module';
import { DeliveriesController } from './deliveries.controller';
import { DeliveriesService } from './deliveries.service';
import { DeliveriesSweeper } from './deliveries.sweeper';
import { ReceiverGate } from './receiver-gate';
import { WebhookSender } from './webhook-sender';
import { WebhooksProcessor } from './webhooks.processor';
import { WebhooksService } from './webhooks.service';

/** Signed, retried delivery of terminated Generations and Prompts to their webhooks, and its log. */
@Module({
  imports: [
    TypeOrmModule.forFeature([WebhookDelivery, ApiKey]),
    // Only for the processor, without a queue of its own: jobs are added in transactions.
    BullModule.registerQueue(),
    HttpModule,
    TextToImageModule,
    FinetunePromptsModule,
  ],
  controllers: [DeliveriesController],
  providers: [ReceiverGate, WebhookSender, WebhooksService, WebhooksProcessor, DeliveriesService, DeliveriesSweeper],
  exports: [DeliveriesService],
})
export class WebhooksModule {}
