import { Image } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ModelsModule } from '../models/models.module';
import { TextToImageModule } from './text-to-image.module';
import { OpenaiController } from './openai.controller';
import { OpenaiAnswer } from './openai-answer';

/** Pictures in the shape of OpenAI's API. */
@Module({
  imports: [TypeOrmModule.forFeature([Image]), ModelsModule, TextToImageModule],
  controllers: [OpenaiController],
  providers: [OpenaiAnswer],
})
export class OpenaiModule {}
