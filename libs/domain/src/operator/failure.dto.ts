import { ApiProperty } from '@nestjs/swagger';
import type { ImageTaskKind } from '../image-tasks/image-task';
import { OfKey } from './of-key.dto';
import { taskKinds } from './queue.dto';

/** A Generation or Prompt that failed. Its texts are its owner's alone. */
export class FailureDto extends OfKey {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24 })
  id: string;

  @ApiProperty({ enum: taskKinds, enumName: 'TaskKind' })
  kind: ImageTaskKind;

  @ApiProperty({ type: String, description: 'The model that was asked for.' })
  model: string;

  @ApiProperty({ type: String, nullable: true, description: 'The weights that drew it, if drawing began.' })
  served_by: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The reason, as its owner reads it.',
    example: 'The model sd2.1 is not installed.',
  })
  error: string | null;

  @ApiProperty({ type: 'integer', description: 'How often a worker has taken it.', example: 1 })
  attempts: number;

  @ApiProperty({ type: 'integer', description: 'How many workers ended while they drew it.', example: 0 })
  worker_deaths: number;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at: string;

  @ApiProperty({ type: String, format: 'date-time' })
  completed_at: string;
}
