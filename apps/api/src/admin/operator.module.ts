import { Module } from '@nestjs/common';
import { ModelsModule } from '../models/models.module';
import { StorageUseModule } from '../files/storage-use.module';
import { WebhooksModule } from '../webhooks/webhooks.module';
import { FailuresService } from './failures.service';
import { KeyDeliveriesService } from './key-deliveries.service';
import { OperatorController } from './operator.controller';
import { ServiceStateService } from './service-state.service';

/** What an operator sees of the service: queue, workers, storage, failures and deliveries of all keys. */
@Module({
  imports: [ModelsModule, StorageUseModule, WebhooksModule],
  controllers: [OperatorController],
  providers: [FailuresService, KeyDeliveriesService, ServiceStateService],
})
export class OperatorModule {}
