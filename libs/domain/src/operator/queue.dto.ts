import { ApiProperty } from '@nestjs/swagger';
import type { ImageTaskKind } from '../image-tasks/image-task';
import { OfKey } from './of-key.dto';

export const taskKinds = ['generation', 'prompt'] as const satisfies readonly ImageTaskKind[];

/** What one key has waiting for one model. */
export class WaitingTasksDto extends OfKey {
  @ApiProperty({ type: String })
  model: string;

  @ApiProperty({ type: 'integer', description: 'How many wait.', example: 12 })
  queued: number;

  @ApiProperty({ type: String, format: 'date-time', description: 'When the oldest of them was accepted.' })
  oldest_at: string;
}

/** What a worker draws now. */
export class DrawingTaskDto extends OfKey {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24 })
  id: string;

  @ApiProperty({ enum: taskKinds, enumName: 'TaskKind' })
  kind: ImageTaskKind;

  @ApiProperty({ type: String })
  model: string;

  @ApiProperty({ type: 'integer', description: 'Pictures to draw.', example: 1 })
  pictures: number;

  @ApiProperty({ type: 'integer' })
  steps: number;

  @ApiProperty({ type: 'integer', description: 'How often a worker has taken it.', example: 1 })
  attempt: number;

  @ApiProperty({ type: String, format: 'date-time', description: 'When a worker first took it.' })
  drawn_since: string;
}

/** What waits and what is drawn, without the tasks of sandbox keys. */
export class QueueDto {
  @ApiProperty({ type: 'integer', description: 'Generations and Prompts that wait.', example: 12 })
  queued: number;

  @ApiProperty({ type: 'integer', description: 'Those that workers draw.', example: 3 })
  processing: number;

  @ApiProperty({ type: 'integer', description: 'Webhook deliveries that are due.', example: 0 })
  deliveries_due: number;

  @ApiProperty({
    type: WaitingTasksDto,
    isArray: true,
    description: 'What waits, by key and model; the 100 that wait longest.',
  })
  waiting: WaitingTasksDto[];

  @ApiProperty({ type: DrawingTaskDto, isArray: true, description: 'What is drawn; the 100 that began last.' })
  drawing: DrawingTaskDto[];
}
