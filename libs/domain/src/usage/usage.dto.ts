import { ApiProperty } from '@nestjs/swagger';

/** How usage can be grouped. */
export const usageGroups = ['day', 'model', 'finetune'] as const;
export type UsageGroup = (typeof usageGroups)[number];

/** A caller's usage; it has the one field of `day`, `model` and `finetune` that was asked for. */
export class UsageDto {
  @ApiProperty({ type: String, format: 'date', required: false, description: 'UTC day.' })
  day?: string;

  @ApiProperty({ type: String, required: false, description: 'The model that was asked for.' })
  model?: string;

  @ApiProperty({ type: String, nullable: true, required: false, description: 'Id of the Fine-Tune; null without one.' })
  finetune?: string | null;

  @ApiProperty({ type: 'integer', description: 'Finished pictures.' })
  images: number;

  @ApiProperty({ type: 'integer', description: 'Denoising steps of these pictures.' })
  steps: number;

  @ApiProperty({ type: Number, description: 'Seconds of drawing.' })
  compute_seconds: number;
}
