import { Image } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { TextToImageModule } from './text-to-image.module';
import { OpenaiController } from './openai.controller';
import { OpenaiAnswer } from './openai-answer';

/** Pictures in the shape of OpenAI's API. */
@Module({
  imports: [TypeOrmModule.forFeature([Image]), TextToImageModule],
  controllers: [OpenaiController],
  providers: [OpenaiAnswer],
})
export class OpenaiModule {}
