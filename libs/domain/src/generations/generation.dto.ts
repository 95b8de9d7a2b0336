import { type AspectRatio, aspectRatios } from '../common/sizes';
import { defaults, limits } from '../common/limits';
import type { Metadata } from '../common/column';
import { schedulerNames } from '../common/schedulers';
import { ArrayField, BooleanField, EnumField, NumberField, TextField } from '../fields/fields';
import {
  CfgField,
  HighResolutionField,
  ModelField,
  NegativePromptField,
  OwnMetadataField,
  SeedField,
  ShapeField,
  StepsField,
  WebhookField,
} from '../fields/fields-in-common';
import { type Drawing, type OutputFormat, outputFormats } from '../tasks/drawing';
import type { Task } from '../tasks/task';
import { type TaskStatus, taskStatuses } from '../tasks/task-status';
import type { Generation } from './generation';
import { FinetuneUseDto, UsedFinetuneDto } from './inputs.dto';
import {
  Decimal,
  Id,
  Integer,
  IntegerOrNull,
  OwnObjectOrNull,
  Parts,
  Text,
  TextOrNull,
  Texts,
  Time,
  TimeOrNull,
  Word,
  YesNo,
} from '../fields/fields-of-answers';

/** Body of `POST /v1/sd/text-to-image`. */
export class CreateGenerationDto {
  @TextField({
    description: 'What the picture shows.',
    maxLength: limits.promptLength,
    missingCode: 'PromptMissing',
    example: 'a red circle on a blue background',
  })
  prompt: string;

  @NegativePromptField() negative_prompt?: string | null;
  @ShapeField('the picture') aspect_ratio?: AspectRatio;
  @WebhookField('the Generation') webhook?: string | null;
  @ModelField('Name of an installed model: sd1.5, sd2.1, shapes, or another that GET /v1/models lists.') model?: string;

  @NumberField({
    description: 'How many pictures; picture i has the seed `seed + i`.',
    integer: true,
    ...limits.numGenerations,
    optional: true,
    default: defaults.numGenerations,
  })
  num_generations?: number;

  @OwnMetadataField() metadata?: Metadata | null;
  @CfgField() cfg?: number;
  @StepsField() steps?: number;
  @SeedField('the first picture') seed?: number;

  @EnumField({
    description: "Sampling method; the model's own when left out.",
    values: schedulerNames,
    name: 'Scheduler',
    optional: true,
  })
  scheduler?: string | null;

  @HighResolutionField() high_resolution?: boolean;

  @EnumField({
    description: 'File format of the pictures.',
    values: outputFormats,
    name: 'OutputFormat',
    optional: true,
    default: defaults.outputFormat,
  })
  output_format?: OutputFormat;

  @BooleanField({
    description: 'Whether `(word:1.3)` and `[word]` in the texts weigh words, and `BREAK` ends a chunk of 75 tokens.',
    optional: true,
    default: defaults.promptWeighting,
  })
  prompt_weighting?: boolean;

  @ArrayField({
    description:
      'Fine-Tunes of your own, all of one base model, which draws where `model` is left out. The words of the texts are used as they are written.',
    min: 0,
    max: limits.usedFinetunes,
    element: () => FinetuneUseDto,
    optional: true,
  })
  finetunes?: FinetuneUseDto[];
}

/** A drawing and its task as far as records show them. */
export type ShownDrawing = Omit<Drawing, 'id' | 'finetuneId' | 'weightsHash' | 'weightsScale' | 'task'> & {
  task: Pick<Task, 'model' | 'status' | 'error' | 'createdAt' | 'completedAt'>;
};

/** The parts of a Generation that are shown. */
export type GenerationRecord = Pick<Generation, 'id' | 'webhook' | 'metadata'> & { drawing: ShownDrawing };

/** A Generation in every route and in its webhook. */
export class GenerationDto {
  @Id() id: string;
  @Text() prompt: string;
  @TextOrNull() negative_prompt: string | null;
  @Word(aspectRatios, 'AspectRatio') aspect_ratio: AspectRatio;
  @TextOrNull('', { format: 'iri' }) webhook: string | null;
  @Text('The model that was asked for.') model: string;
  @Integer() num_generations: number;
  @OwnObjectOrNull() metadata: Metadata | null;
  @TextOrNull('Why it failed, in plain words.') error: string | null;
  @Time('When the request was accepted.') started_at: string;
  @Word(taskStatuses, 'GenerationStatus') status: TaskStatus;
  @Texts('URLs of the pictures, in order of their seeds.') images: string[];
  @Decimal() cfg: number;
  @Integer() steps: number;
  @Integer() seed: number;

  @TextOrNull(
    'The sampling method that the request names, or else the `defaults` of the model. If it is null, neither names one, and the `scheduler` of the model draws; `GET /v1/models` has both.',
  )
  scheduler: string | null;

  @YesNo() high_resolution: boolean;
  @Word(outputFormats, 'OutputFormat') output_format: OutputFormat;
  @YesNo() prompt_weighting: boolean;

  @Parts(UsedFinetuneDto, 'Its Fine-Tunes, with the scales that they are drawn with.') finetunes: UsedFinetuneDto[];

  @IntegerOrNull(
    'Chunks of 75 tokens in which the longer of prompt and negative prompt is read; null for what was asked for before they were counted.',
  )
  prompt_chunks: number | null;

  @TextOrNull('What enlarged a high-resolution picture.') upscaler: string | null;
  @TextOrNull('Name and hash of the weights that draw it, once drawing has started.') served_by: string | null;
  @TimeOrNull('When it terminated.') completed_at: string | null;

  /**
   * @param imageUrls of the task's images, in their order.
   */
  static from({ drawing, ...generation }: GenerationRecord, imageUrls: string[]): GenerationDto {
    const { task } = drawing;
    return {
      id: generation.id,
      prompt: drawing.prompt,
      negative_prompt: drawing.negativePrompt,
      aspect_ratio: drawing.aspectRatio,
      webhook: generation.webhook,
      model: task.model,
      num_generations: drawing.numImages,
      metadata: generation.metadata,
      error: task.error,
      started_at: task.createdAt.toISOString(),
      status: task.status,
      images: imageUrls,
      cfg: drawing.cfg,
      steps: drawing.steps,
      seed: drawing.seed,
      scheduler: drawing.scheduler,
      high_resolution: drawing.highResolution,
      output_format: drawing.outputFormat,
      prompt_weighting: drawing.promptWeighting,
      finetunes: [...(drawing.inputs?.finetunes ?? [])],
      prompt_chunks: drawing.promptChunks,
      upscaler: drawing.upscaler,
      served_by: drawing.servedBy,
      completed_at: task.completedAt?.toISOString() ?? null,
    };
  }
}
