import { ApiProperty } from '@nestjs/swagger';
import type { AspectRatio } from '../common/aspect-ratio';
import { aspectRatios } from '../common/aspect-ratio';
import type { Metadata } from '../common/metadata';
import type { ImageTask, OutputFormat } from '../image-tasks/image-task';
import { outputFormats } from '../image-tasks/image-task';
import type { ImageTaskStatus } from '../image-tasks/image-task-status';
import { imageTaskStatuses } from '../image-tasks/image-task-status';
import type { Generation } from './generation';

/** The parts of a Generation and its task that are shown. */
export type GenerationRecord = Pick<Generation, 'id' | 'webhook' | 'metadata'> & {
  task: Pick<
    ImageTask,
    | 'prompt'
    | 'negativePrompt'
    | 'aspectRatio'
    | 'model'
    | 'numImages'
    | 'error'
    | 'createdAt'
    | 'status'
    | 'cfg'
    | 'steps'
    | 'seed'
    | 'scheduler'
    | 'highResolution'
    | 'outputFormat'
    | 'promptWeighting'
    | 'promptChunks'
    | 'upscaler'
    | 'servedBy'
    | 'completedAt'
  >;
};

/** A Generation in every route and in its webhook. */
export class GenerationDto {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24 })
  id: string;

  @ApiProperty({ type: String })
  prompt: string;

  @ApiProperty({ type: String, nullable: true })
  negative_prompt: string | null;

  @ApiProperty({ enum: [...aspectRatios], enumName: 'AspectRatio' })
  aspect_ratio: AspectRatio;

  @ApiProperty({ type: String, format: 'iri', nullable: true })
  webhook: string | null;

  @ApiProperty({ type: String, description: 'The model that was asked for.' })
  model: string;

  @ApiProperty({ type: 'integer' })
  num_generations: number;

  @ApiProperty({ type: 'object', additionalProperties: true, nullable: true })
  metadata: Metadata | null;

  @ApiProperty({ type: String, nullable: true, description: 'Why it failed, in plain words.' })
  error: string | null;

  @ApiProperty({ type: String, format: 'date-time', description: 'When the request was accepted.' })
  started_at: string;

  @ApiProperty({ enum: [...imageTaskStatuses], enumName: 'GenerationStatus' })
  status: ImageTaskStatus;

  @ApiProperty({ type: String, isArray: true, description: 'URLs of the pictures, in order of their seeds.' })
  images: string[];

  @ApiProperty({ type: Number })
  cfg: number;

  @ApiProperty({ type: 'integer' })
  steps: number;

  @ApiProperty({ type: 'integer' })
  seed: number;

  @ApiProperty({
    type: String,
    nullable: true,
    description:
      'The sampling method that the request names, or else the `defaults` of the model. If it is null, neither names one, and the `scheduler` of the model draws; `GET /v1/models` has both.',
  })
  scheduler: string | null;

  @ApiProperty({ type: Boolean })
  high_resolution: boolean;

  @ApiProperty({ enum: [...outputFormats], enumName: 'OutputFormat' })
  output_format: OutputFormat;

  @ApiProperty({ type: Boolean })
  prompt_weighting: boolean;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    description:
      'Chunks of 75 tokens in which the longer of prompt and negative prompt is read; null for what was asked for before they were counted.',
  })
  prompt_chunks: number | null;

  @ApiProperty({ type: String, nullable: true, description: 'What enlarged a high-resolution picture.' })
  upscaler: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Name and hash of the weights that draw it, once drawing has started.',
  })
  served_by: string | null;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'When it terminated.' })
  completed_at: string | null;

  /**
   * @param imageUrls of the task's images, in their order.
   */
  static from({ task, ...generation }: GenerationRecord, imageUrls: string[]): GenerationDto {
    return {
      id: generation.id,
      prompt: task.prompt,
      negative_prompt: task.negativePrompt,
      aspect_ratio: task.aspectRatio,
      webhook: generation.webhook,
      model: task.model,
      num_generations: task.numImages,
      metadata: generation.metadata,
      error: task.error,
      started_at: task.createdAt.toISOString(),
      status: task.status,
      images: imageUrls,
      cfg: task.cfg,
      steps: task.steps,
      seed: task.seed,
      scheduler: task.scheduler,
      high_resolution: task.highResolution,
      output_format: task.outputFormat,
      prompt_weighting: task.promptWeighting,
      prompt_chunks: task.promptChunks,
      upscaler: task.upscaler,
      served_by: task.servedBy,
      completed_at: task.completedAt?.toISOString() ?? null,
    };
  }
}
