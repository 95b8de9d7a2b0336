import type { Config } from '@app/config';
import { ConfigModule } from '@app/config';
import { DatabaseModule } from '@app/database';
import { ImageTasksModule } from '@app/tasks';
import { QueueModule } from '@app/queue';
import { StorageModule } from '@app/storage';
import { JsonLogger } from '@app/observability';
import type { DynamicModule } from '@nestjs/common';
import { Module } from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR } from '@nestjs/core';
import { AuthModule } from './http/auth.module';
import { CollectionsModule } from './collections/collections.module';
import { EventsModule } from './events/events.module';
import { FinetunePromptsModule } from './finetunes/finetune-prompts.module';
import { FinetunesModule } from './finetunes/finetunes.module';
import { ProblemFilter } from './http/problem.filter';
import { RequestInterceptor } from './http/request.interceptor';
import { IdempotencyInterceptor } from './http/idempotency.interceptor';
import { IdempotencyModule } from './http/idempotency.module';
import { ImagesModule } from './files/images.module';
import { InfrastructureModule } from './http/infrastructure.module';
import { KeysModule } from './admin/keys.module';
import { OpenRequestsModule } from './http/open-requests.module';
import { ModelsModule } from './models/models.module';
import { OperatorModule } from './admin/operator.module';
import { PageModule } from './files/page.module';
import { RetentionModule } from './files/retention.module';
import { OpenaiModule } from './generations/openai.module';
import { StylesModule } from './collections/styles.module';
import { ObservabilityModule } from './admin/observability.module';
import { TextToImageModule } from './generations/text-to-image.module';
import { UsageModule } from './admin/usage.module';
import { WaitInterceptor } from './generations/wait.interceptor';
import { WaitingModule } from './generations/waiting.module';
import { WebhooksModule } from './webhooks/webhooks.module';

/** The HTTP edge: every route of `/v1`, pictures, webhooks, health. */
@Module({
  imports: [
    AuthModule,
    TextToImageModule,
    FinetunesModule,
    StylesModule,
    FinetunePromptsModule,
    CollectionsModule,
    ImagesModule,
    WebhooksModule,
    UsageModule,
    EventsModule,
    OpenRequestsModule,
    ModelsModule,
    ObservabilityModule,
    RetentionModule,
    WaitingModule,
    IdempotencyModule,
    OpenaiModule,
    KeysModule,
    OperatorModule,
    PageModule,
  ],
  providers: [
    { provide: APP_FILTER, useClass: ProblemFilter },
    { provide: APP_INTERCEPTOR, useClass: RequestInterceptor },
    { provide: APP_INTERCEPTOR, useClass: WaitInterceptor },
    { provide: APP_INTERCEPTOR, useClass: IdempotencyInterceptor },
  ],
})
export class ApiModule {
  static forRoot(config: Config): DynamicModule {
    return {
      module: ApiModule,
      imports: [
        ConfigModule.forRoot(config, new JsonLogger('api', config.logLevel)),
        DatabaseModule.forRoot({ applicationName: 'darkroom-api', poolSize: 20 }),
        QueueModule.forRoot(),
        StorageModule,
        ImageTasksModule,
        InfrastructureModule,
      ],
    };
  }
}
