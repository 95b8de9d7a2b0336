import { type Config, CONFIG } from '@app/config';
import { ModelStore } from '@app/model-store';
import { Module } from '@nestjs/common';
import { ModelsController } from './models.controller';
import { ModelsService } from './models.service';
import { PromptLengths } from './prompt-lengths.service';
import { TokenCounter } from './token-counter';

/** Installed models, and the workers that draw with them. */
@Module({
  controllers: [ModelsController],
  providers: [
    ModelsService,
    PromptLengths,
    TokenCounter,
    { provide: ModelStore, inject: [CONFIG], useFactory: (config: Config) => new ModelStore(config.modelsDir) },
  ],
  exports: [ModelsService, PromptLengths],
})
export class ModelsModule {}
