import { ApiProperty } from '@nestjs/swagger';
import type { ImageTask } from '../image-tasks/image-task';
import type { ImageTaskStatus } from '../image-tasks/image-task-status';
import { imageTaskStatuses } from '../image-tasks/image-task-status';
import type { ShownPrompt } from './prompt.dto';
import { PromptDto } from './prompt.dto';

/** Where a task is: its place in the queue, and its last step, as far as this process knows. */
interface TaskPlace {
  queuePosition: number | null;
  step: number | null;
}

type StatusTask = Pick<
  ImageTask,
  'status' | 'steps' | 'servedBy' | 'upscaler' | 'promptChunks' | 'createdAt' | 'completedAt'
>;

/** What a Prompt has no fields for. */
export class PromptStatusDto {
  @ApiProperty({ enum: [...imageTaskStatuses], enumName: 'GenerationStatus' })
  status: ImageTaskStatus;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    nullable: true,
    description: 'How many are likely to be drawn before it; null once it is drawn.',
    example: 2,
  })
  queue_position: number | null;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    nullable: true,
    description:
      'Steps that are done: 0 while it waits, and all of them once it has succeeded; null while it is prepared, ' +
      'for a moment after the api has started again, and if it has failed or is canceled.',
    example: 12,
  })
  step: number | null;

  @ApiProperty({ type: 'integer', description: 'Steps as requested.' })
  steps: number;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Name and hash of the weights that draw it, once drawing has started.',
  })
  served_by: string | null;

  @ApiProperty({ type: String, nullable: true, description: 'What enlarged a high-resolution picture.' })
  upscaler: string | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    description: 'Chunks of 75 tokens in which the longer of prompt and negative prompt is read.',
  })
  prompt_chunks: number | null;

  @ApiProperty({ type: String, format: 'date-time', description: 'When the request was accepted.' })
  started_at: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'When it terminated.' })
  completed_at: string | null;

  static of(task: StatusTask, { queuePosition, step }: TaskPlace): PromptStatusDto {
    return {
      status: task.status,
      queue_position: task.status === 'queued' ? queuePosition : null,
      step: task.status === 'succeeded' ? task.steps : task.status === 'queued' ? 0 : step,
      steps: task.steps,
      served_by: task.servedBy,
      upscaler: task.upscaler,
      prompt_chunks: task.promptChunks,
      started_at: task.createdAt.toISOString(),
      completed_at: task.completedAt?.toISOString() ?? null,
    };
  }
}

/** A Prompt together with its status, in the last event of its stream. */
export class TerminatedPromptDto extends PromptDto {
  @ApiProperty({ enum: [...imageTaskStatuses], enumName: 'GenerationStatus' })
  status: ImageTaskStatus;

  @ApiProperty({ type: String, nullable: true })
  served_by: string | null;

  @ApiProperty({ type: String, nullable: true })
  upscaler: string | null;

  @ApiProperty({ type: 'integer', nullable: true })
  prompt_chunks: number | null;

  @ApiProperty({ type: String, format: 'date-time' })
  started_at: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true })
  completed_at: string | null;

  /** @param prompt with its task loaded. */
  static ended(prompt: ShownPrompt & { task: StatusTask }, imageUrls: string[]): TerminatedPromptDto {
    const {
      queue_position: _position,
      step: _step,
      ...status
    } = PromptStatusDto.of(prompt.task, {
      queuePosition: null,
      step: null,
    });
    return { ...PromptDto.from(prompt, imageUrls), ...status };
  }
}
