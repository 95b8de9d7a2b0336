import { Image } from '@app/domain';
import { PicturesModule } from '@app/pictures';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ModelsModule } from '../models/models.module';
import { TextToImageModule } from './text-to-image.module';
import { UploadsModule } from '../uploads/uploads.module';
import { OpenaiController } from './openai.controller';
import { OpenaiEditsController } from './openai-edits.controller';
import { OpenaiEdits } from './openai-edits.service';
import { OpenaiAnswer } from './openai-answer';
import { OpenaiOrders } from './openai-orders.service';
import { PartialImages } from './partial-images';

/** Pictures in the shape of OpenAI's API. */
@Module({
  imports: [TypeOrmModule.forFeature([Image]), ModelsModule, PicturesModule, TextToImageModule, UploadsModule],
  controllers: [OpenaiController, OpenaiEditsController],
  providers: [OpenaiAnswer, OpenaiEdits, OpenaiOrders, PartialImages],
})
export class OpenaiModule {}
