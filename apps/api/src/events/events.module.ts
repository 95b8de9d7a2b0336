import { Task } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { FinetunePromptsModule } from '../finetunes/finetune-prompts.module';
import { FinetunesModule } from '../finetunes/finetunes.module';
import { TextToImageModule } from '../generations/text-to-image.module';
import { EventsController } from './events.controller';
import { LastSteps } from './last-steps';
import { PromptStatusController } from './prompt-status.controller';
import { QueuePositions } from './queue-positions';
import { TaskFeed } from './task-feed';

/** Server-sent events of tasks, and the status of Prompts. */
@Module({
  imports: [TypeOrmModule.forFeature([Task]), TextToImageModule, FinetunesModule, FinetunePromptsModule],
  controllers: [EventsController, PromptStatusController],
  providers: [LastSteps, QueuePositions, TaskFeed],
})
export class EventsModule {}
