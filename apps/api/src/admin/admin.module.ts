import { ApiKey } from '@app/domain';
import { Metrics } from '@app/observability';
import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ModelsModule } from '../models/models.module';
import { WebhooksModule } from '../webhooks/webhooks.module';
import { ActivityService } from './activity.service';
import { FailuresService } from './failures.service';
import { HealthController } from './health.controller';
import { HttpObserver } from './http-observer.middleware';
import { KeyDeliveriesService } from './key-deliveries.service';
import { CurrentKeyController, KeysController } from './keys.controller';
import { KeysService } from './keys.service';
import { MetricsController } from './metrics.controller';
import { OperatorController } from './operator.controller';
import { QueueMetrics } from './queue-metrics';
import { ServiceStateService } from './service-state.service';
import { UsageModule } from './usage.module';

/** For those who operate the service: keys, what it is at, health, metrics and the log of requests. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ApiKey]), ModelsModule, UsageModule, WebhooksModule],
  controllers: [HealthController, MetricsController, CurrentKeyController, KeysController, OperatorController],
  providers: [
    { provide: Metrics, useFactory: () => new Metrics() },
    ActivityService,
    FailuresService,
    HttpObserver,
    KeyDeliveriesService,
    KeysService,
    QueueMetrics,
    ServiceStateService,
  ],
  exports: [HttpObserver, Metrics],
})
export class AdminModule {}
