import { Metrics } from '@app/logging';
import { Global, Module } from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { HealthController } from '../health/health.controller';
import { Drain } from '../shutdown/drain';
import { StorageUseModule } from '../storage-use/storage-use.module';
import { CreatedRecordsInterceptor } from './created-records.interceptor';
import { HttpObserver } from './http-observer';
import { MetricsController } from './metrics.controller';
import { QueueMetrics } from './queue-metrics';

/** What can be seen of the process from outside: its health, its metrics, its log of requests. */
@Global()
@Module({
  imports: [StorageUseModule],
  controllers: [HealthController, MetricsController],
  providers: [
    { provide: Metrics, useFactory: () => new Metrics() },
    { provide: APP_INTERCEPTOR, useClass: CreatedRecordsInterceptor },
    Drain,
    HttpObserver,
    QueueMetrics,
  ],
  exports: [Drain, HttpObserver, Metrics],
})
export class ObservabilityModule {}
