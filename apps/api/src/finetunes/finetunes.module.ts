import { Finetune } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ModelsModule } from '../models/models.module';
import { TextToImageModule } from '../generations/text-to-image.module';
import { FinetuneWeightsService } from './finetune-weights.service';
import { FinetunesController } from './finetunes.controller';
import { FinetunesService } from './finetunes.service';
import { WeightsInspector } from './weights-inspector';
import { WeightsSweeper } from './weights.sweeper';

/** Fine-Tunes of a caller, and their weights. */
@Module({
  imports: [TypeOrmModule.forFeature([Finetune]), ModelsModule, TextToImageModule],
  controllers: [FinetunesController],
  providers: [FinetunesService, FinetuneWeightsService, WeightsInspector, WeightsSweeper],
  exports: [FinetunesService],
})
export class FinetunesModule {}
