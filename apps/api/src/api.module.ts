import { type Config, ConfigModule } from '@app/config';
import { DatabaseModule } from '@app/database';
import { TasksModule } from '@app/tasks';
import { QueueModule } from '@app/queue';
import { StorageModule } from '@app/storage';
import type { JsonLogger } from '@app/observability';
import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR } from '@nestjs/core';
import { HttpModule } from './http/http.module';
import { AgentsModule } from './agents/agents.module';
import { CollectionsModule } from './collections/collections.module';
import { DrawingsModule } from './drawings/drawings.module';
import { EventsModule } from './events/events.module';
import { FinetunePromptsModule } from './finetunes/finetune-prompts.module';
import { FinetunesModule } from './finetunes/finetunes.module';
import { ProblemFilter } from './http/problem.filter';
import { RequestInterceptor } from './http/request.interceptor';
import { IdempotencyInterceptor } from './http/idempotency.interceptor';
import { AdminModule } from './admin/admin.module';
import { FilesModule } from './files/files.module';
import { ModelsModule } from './models/models.module';
import { OpenaiModule } from './generations/openai.module';
import { StylesModule } from './collections/styles.module';
import { TextToImageModule } from './generations/text-to-image.module';
import { UploadsModule } from './uploads/uploads.module';
import { UsageModule } from './admin/usage.module';
import { VerificationModule } from './verification/verification.module';
import { WaitInterceptor } from './generations/wait.interceptor';
import { WebhooksModule } from './webhooks/webhooks.module';

/** The HTTP edge: every route of `/v1`, pictures, webhooks, health. */
@Module({
  imports: [
    TextToImageModule,
    FinetunesModule,
    StylesModule,
    FinetunePromptsModule,
    CollectionsModule,
    DrawingsModule,
    FilesModule,
    UploadsModule,
    VerificationModule,
    WebhooksModule,
    UsageModule,
    EventsModule,
    ModelsModule,
    OpenaiModule,
    AgentsModule,
    AdminModule,
  ],
  providers: [
    { provide: APP_FILTER, useClass: ProblemFilter },
    { provide: APP_INTERCEPTOR, useClass: RequestInterceptor },
    { provide: APP_INTERCEPTOR, useClass: WaitInterceptor },
    { provide: APP_INTERCEPTOR, useClass: IdempotencyInterceptor },
  ],
})
export class ApiModule {
  static forRoot(config: Config, logger: JsonLogger): DynamicModule {
    return {
      module: ApiModule,
      imports: [
        ConfigModule.forRoot(config, logger),
        DatabaseModule.forRoot({ applicationName: 'darkroom-api', poolSize: 20 }),
        QueueModule.forRoot(),
        StorageModule,
        TasksModule,
        HttpModule,
      ],
    };
  }
}
