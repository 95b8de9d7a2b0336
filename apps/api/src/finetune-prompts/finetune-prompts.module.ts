import { FinetunePrompt } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AcceptanceModule } from '../acceptance/acceptance.module';
import { FinetunesModule } from '../finetunes/finetunes.module';
import { ImagesModule } from '../images/images.module';
import { ModelsModule } from '../models/models.module';
import { StorageUseModule } from '../storage-use/storage-use.module';
import { ThumbnailsModule } from '../thumbnails/thumbnails.module';
import { FinetunePromptsController } from './finetune-prompts.controller';
import { FinetunePromptsService } from './finetune-prompts.service';
import { PromptBatches } from './prompt-batches.service';

/** Prompts of Fine-Tunes. */
@Module({
  imports: [
    TypeOrmModule.forFeature([FinetunePrompt]),
    AcceptanceModule,
    FinetunesModule,
    ImagesModule,
    ModelsModule,
    StorageUseModule,
    ThumbnailsModule,
  ],
  controllers: [FinetunePromptsController],
  providers: [FinetunePromptsService, PromptBatches],
  exports: [FinetunePromptsService],
})
export class FinetunePromptsModule {}
