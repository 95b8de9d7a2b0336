import { FinetunePrompt } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AcceptanceModule } from '../generations/acceptance.module';
import { FinetunesModule } from './finetunes.module';
import { FinetunePromptsController } from './finetune-prompts.controller';
import { FinetunePromptsService } from './finetune-prompts.service';

/** Prompts of Fine-Tunes. */
@Module({
  imports: [TypeOrmModule.forFeature([FinetunePrompt]), AcceptanceModule, FinetunesModule],
  controllers: [FinetunePromptsController],
  providers: [FinetunePromptsService],
  exports: [FinetunePromptsService],
})
export class FinetunePromptsModule {}
