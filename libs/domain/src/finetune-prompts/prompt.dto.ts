import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import type { AspectRatio } from '../common/aspect-ratio';
import { aspectRatios } from '../common/aspect-ratio';
import type { Metadata } from '../common/metadata';
import type { ImageTask } from '../image-tasks/image-task';
import type { FinetunePrompt } from './finetune-prompt';

/** The parts of a Prompt and its task that are shown. */
export type ShownPrompt = Pick<FinetunePrompt, 'id' | 'prompt' | 'metadata'> & {
  task: Pick<
    ImageTask,
    'negativePrompt' | 'cfg' | 'steps' | 'seed' | 'highResolution' | 'aspectRatio' | 'error' | 'createdAt'
  >;
};

/** Fields of both new and stored Prompts. */
abstract class PromptFields {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24 })
  id: string;

  @ApiProperty({ type: String, description: 'The text as it was sent.' })
  prompt: string;

  @ApiProperty({ type: String, nullable: true })
  negative_prompt: string | null;

  @ApiProperty({ type: 'integer' })
  steps: number;

  @ApiProperty({ type: Boolean })
  high_resolution: boolean;

  @ApiProperty({ enum: [...aspectRatios], enumName: 'AspectRatio' })
  aspect_ratio: AspectRatio;

  @ApiProperty({ type: String, isArray: true, description: 'URLs of its pictures; empty until it is drawn.' })
  images: string[];

  @ApiProperty({ type: 'object', additionalProperties: true, nullable: true })
  metadata: Metadata | null;

  @ApiProperty({ type: String, nullable: true, description: 'Why it failed, in plain words.' })
  error_message: string | null;

  @ApiProperty({ type: String, format: 'date-time', description: 'When the request was accepted.' })
  created_at: string;
}

/** A Prompt in a list or on its own. */
export class PromptDto extends PromptFields {
  @ApiProperty({ type: Number })
  cfg: number;

  @ApiProperty({ type: 'integer' })
  seed: number;

  /**
   * @param prompt with its task loaded.
   * @param imageUrls of the task's images, in their order.
   */
  static from({ task, ...prompt }: ShownPrompt, imageUrls: string[]): PromptDto {
    return {
      id: prompt.id,
      prompt: prompt.prompt,
      negative_prompt: task.negativePrompt,
      cfg: task.cfg,
      steps: task.steps,
      seed: task.seed,
      high_resolution: task.highResolution,
      aspect_ratio: task.aspectRatio,
      images: imageUrls,
      metadata: prompt.metadata,
      error_message: task.error,
      created_at: task.createdAt.toISOString(),
    };
  }
}

/** A Prompt in the response to its creation, where `cfg` and `seed` are strings. */
export class CreatedPromptDto extends PromptFields {
  @ApiProperty({
    type: String,
    description: 'The shortest decimal.',
    pattern: String.raw`^\d+(\.\d+)?$`,
    example: '7.5',
  })
  cfg: string;

  @ApiProperty({ type: String, pattern: String.raw`^\d+$`, example: '1234567890' })
  seed: string;

  static from(prompt: ShownPrompt): CreatedPromptDto {
    const { cfg, seed, ...rest } = PromptDto.from(prompt, []);
    return { ...rest, cfg: String(cfg), seed: String(seed) };
  }
}

/** A Prompt made from a Style: its identifying fields, and only what was sent with the Style. */
export class PartialPromptDto {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24 })
  id: string;

  @ApiProperty({ type: String, nullable: true })
  error_message: string | null;

  @ApiProperty({ type: String, isArray: true })
  images: string[];

  @ApiProperty({ type: String, format: 'date-time' })
  created_at: string;

  @ApiProperty({ type: 'integer', required: false })
  seed?: number;

  @ApiProperty({ type: Boolean, required: false })
  high_resolution?: boolean;

  @ApiPropertyOptional({
    oneOf: [
      { type: 'string', enum: [...aspectRatios] },
      { type: 'array', items: { type: 'string', enum: [...aspectRatios] }, minItems: 1, maxItems: 1 },
    ],
  })
  aspect_ratio?: AspectRatio | [AspectRatio];

  @ApiPropertyOptional({ type: 'object', additionalProperties: true, nullable: true })
  metadata?: Metadata | null;
}
