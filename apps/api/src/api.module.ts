import type { Config } from '@app/config';
import { ConfigModule, DatabaseModule, ImageTasksModule, QueueModule, StorageModule } from '@app/foundation';
import { JsonLogger } from '@app/observability';
import type { DynamicModule } from '@nestjs/common';
import { Module } from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR } from '@nestjs/core';
import { AuthModule } from './auth/auth.module';
import { CollectionsModule } from './collections/collections.module';
import { EventsModule } from './events/events.module';
import { FinetunePromptsModule } from './finetune-prompts/finetune-prompts.module';
import { FinetunesModule } from './finetunes/finetunes.module';
import { ProblemFilter } from './http/problem.filter';
import { RequestInterceptor } from './http/request.interceptor';
import { IdempotencyInterceptor } from './idempotency/idempotency.interceptor';
import { IdempotencyModule } from './idempotency/idempotency.module';
import { ImagesModule } from './images/images.module';
import { InfrastructureModule } from './infrastructure/infrastructure.module';
import { KeysModule } from './keys/keys.module';
import { OpenRequestsModule } from './open-requests/open-requests.module';
import { ModelsModule } from './models/models.module';
import { OperatorModule } from './operator/operator.module';
import { PageModule } from './page/page.module';
import { RetentionModule } from './retention/retention.module';
import { SandboxModule } from './sandbox/sandbox.module';
import { OpenaiModule } from './openai/openai.module';
import { StylesModule } from './styles/styles.module';
import { ObservabilityModule } from './observability/observability.module';
import { TextToImageModule } from './text-to-image/text-to-image.module';
import { UsageModule } from './usage/usage.module';
import { WaitInterceptor } from './waiting/wait.interceptor';
import { WaitingModule } from './waiting/waiting.module';
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
    SandboxModule,
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
