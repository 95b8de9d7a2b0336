import { ImageTask } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { FinetunePromptsModule } from '../finetune-prompts/finetune-prompts.module';
import { TextToImageModule } from '../text-to-image/text-to-image.module';
import { EventsController } from './events.controller';
import { QueuePositions } from './queue-positions';
import { TaskFeed } from './task-feed';

/** Server-sent events of tasks. */
@Module({
  imports: [TypeOrmModule.forFeature([ImageTask]), TextToImageModule, FinetunePromptsModule],
  controllers: [EventsController],
  providers: [QueuePositions, TaskFeed],
})
export class EventsModule {}
