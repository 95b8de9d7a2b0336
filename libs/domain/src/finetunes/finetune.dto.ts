import { ApiProperty } from '@nestjs/swagger';
import type { Metadata } from '../common/metadata';
import type { Finetune, FinetuneStatus } from './finetune';
import { finetuneStatuses } from './finetune';

/** A Fine-Tune as every route shows it. */
export class FinetuneDto {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24 })
  id: string;

  @ApiProperty({ type: String, nullable: true })
  title: string | null;

  @ApiProperty({ type: String, description: 'The class noun that every Prompt must include.' })
  name: string;

  @ApiProperty({ type: String, description: 'The word that calls the object.' })
  token: string;

  @ApiProperty({ type: String })
  model: string;

  @ApiProperty({
    enum: [...finetuneStatuses],
    enumName: 'FinetuneStatus',
    description: 'registered: drawn by the model alone; ready: its weights are there.',
  })
  status: FinetuneStatus;

  @ApiProperty({ type: 'object', additionalProperties: true, nullable: true })
  metadata: Metadata | null;

  @ApiProperty({ type: String, nullable: true })
  error_message: string | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at: string;

  static from(finetune: Finetune): FinetuneDto {
    return {
      id: finetune.id,
      title: finetune.title,
      name: finetune.name,
      token: finetune.token,
      model: finetune.model,
      status: finetune.status,
      metadata: finetune.metadata,
      error_message: finetune.errorMessage,
      created_at: finetune.createdAt.toISOString(),
    };
  }
}
