import { Generation, Task } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ModelsModule } from '../models/models.module';
import { AcceptanceModule } from './acceptance.module';
import { GenerationsReader } from './generations.reader';
import { GenerationsService } from './generations.service';
import { Terminations } from './terminations';
import { TextToImageController } from './text-to-image.controller';
import { Unanswered } from './unanswered';

/** Generations: pictures from a prompt. */
@Module({
  imports: [TypeOrmModule.forFeature([Generation, Task]), ModelsModule, AcceptanceModule],
  controllers: [TextToImageController],
  providers: [GenerationsService, GenerationsReader, Terminations, Unanswered],
  exports: [GenerationsService, Terminations, Unanswered],
})
export class TextToImageModule {}
