import { FinetunePrompt } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AdmissionModule } from '../admission/admission.module';
import { FinetunesModule } from '../finetunes/finetunes.module';
import { ModelsModule } from '../models/models.module';
import { RecordsModule } from '../records/records.module';
import { StylesModule } from '../styles/styles.module';
import { FinetunePromptsController } from './finetune-prompts.controller';
import { FinetunePromptsService } from './finetune-prompts.service';

/** Prompts of Fine-Tunes. */
@Module({
  imports: [
    TypeOrmModule.forFeature([FinetunePrompt]),
    AdmissionModule,
    FinetunesModule,
    ModelsModule,
    RecordsModule,
    StylesModule,
  ],
  controllers: [FinetunePromptsController],
  providers: [FinetunePromptsService],
  exports: [FinetunePromptsService],
})
export class FinetunePromptsModule {}
