import { ApiKey, WebhookDelivery } from '@app/domain';
import { plainRequest } from '@app/remote';
import { HttpModule } from '@nestjs/axios';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { FinetunePromptsModule } from '../finetunes/finetune-prompts.module';
import { FinetunesModule } from '../finetunes/finetunes.module';
import { TextToImageModule } from '../generations/text-to-image.module';
import { DeliveriesController, PromptDeliveriesController } from './deliveries.controller';
import { DeliveriesService } from './deliveries.service';
import { DeliveryLoop } from './delivery-loop';
import { ReceiverGate } from './receiver-gate';
import { WebhookSender } from './webhook-sender';
import { WebhooksService } from './webhooks.service';

/** Signed, retried delivery of terminated Generations, Prompts and Fine-Tunes to their webhooks, and its log. */
@Module({
  imports: [
    TypeOrmModule.forFeature([WebhookDelivery, ApiKey]),
    HttpModule.register(plainRequest),
    TextToImageModule,
    FinetunesModule,
    FinetunePromptsModule,
  ],
  controllers: [DeliveriesController, PromptDeliveriesController],
  providers: [ReceiverGate, WebhookSender, WebhooksService, DeliveryLoop, DeliveriesService],
  exports: [DeliveriesService],
})
export class WebhooksModule {}
