import { Finetune } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AcceptanceModule } from '../generations/acceptance.module';
import { ModelsModule } from '../models/models.module';
import { TextToImageModule } from '../generations/text-to-image.module';
import { FetchedWeights } from './fetched-weights.service';
import { FinetuneWeightsService } from './finetune-weights.service';
import { FinetunesController } from './finetunes.controller';
import { FinetunesService } from './finetunes.service';
import { PromptOrders } from './prompt-orders.service';
import { TrainingsService } from './trainings.service';
import { WeightsInspector } from './weights-inspector';
import { WeightsLoop } from './weights-loop';
import { WeightsSweeper } from './weights.sweeper';

/** Fine-Tunes of a caller, and their weights. */
@Module({
  imports: [TypeOrmModule.forFeature([Finetune]), AcceptanceModule, ModelsModule, TextToImageModule],
  controllers: [FinetunesController],
  providers: [
    FinetunesService,
    FinetuneWeightsService,
    PromptOrders,
    TrainingsService,
    FetchedWeights,
    WeightsInspector,
    WeightsLoop,
    WeightsSweeper,
  ],
  exports: [FinetunesService, PromptOrders],
})
export class FinetunesModule {}
