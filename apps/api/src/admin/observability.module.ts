import { Metrics } from '@app/observability';
import { Global, Module } from '@nestjs/common';
import { StorageUseModule } from '../files/storage-use.module';
import { HealthController } from './health.controller';
import { HttpObserver } from './http-observer.middleware';
import { MetricsController } from './metrics.controller';
import { QueueMetrics } from './queue-metrics';

/** Health, metrics, request log and shutdown of the process. */
@Global()
@Module({
  imports: [StorageUseModule],
  controllers: [HealthController, MetricsController],
  providers: [{ provide: Metrics, useFactory: () => new Metrics() }, HttpObserver, QueueMetrics],
  exports: [HttpObserver, Metrics],
})
export class ObservabilityModule {}
