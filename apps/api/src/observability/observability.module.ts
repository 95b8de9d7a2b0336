import { Metrics } from '@app/observability';
import { Global, Module } from '@nestjs/common';
import { StorageUseModule } from '../storage-use/storage-use.module';
import { HealthController } from './health.controller';
import { HttpObserver } from './http-observer.middleware';
import { MetricsController } from './metrics.controller';
import { QueueMetrics } from './queue-metrics';

/** What can be seen of the process from outside: its health, its metrics, its log of requests, and its end. */
@Global()
@Module({
  imports: [StorageUseModule],
  controllers: [HealthController, MetricsController],
  providers: [{ provide: Metrics, useFactory: () => new Metrics() }, HttpObserver, QueueMetrics],
  exports: [HttpObserver, Metrics],
})
export class ObservabilityModule {}
