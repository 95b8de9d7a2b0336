import type { AspectRatio } from '../common/sizes';
import type { Metadata } from '../common/column';
import { type Drawing, type OutputFormat, outputFormats } from '../tasks/drawing';
import { filteredCount, flaggedIndexes } from '../tasks/filtered';
import { type MeasuredTask, MetricsDto } from '../tasks/metrics.dto';
import type { Task } from '../tasks/task';
import { type TaskStatus, taskStatuses } from '../tasks/task-status';
import type { Generation } from './generation';
import type { PlaceInPicture } from '../tasks/drawing-inputs';
import { PlaceOrNull, UsedControlDto, UsedFinetuneDto } from './inputs.dto';
import {
  Decimal,
  DecimalOrNull,
  Id,
  Integer,
  IntegerOrNull,
  Integers,
  OwnValue,
  PartOrNull,
  Parts,
  Text,
  TextOrNull,
  Texts,
  Time,
  TimeOrNull,
  Word,
  YesNo,
} from '../fields/fields-of-answers';

/** Said of the shape of what is drawn. */
export const shapeAsSent =
  'square, portrait, landscape or a ratio, as it was sent; null where `width` and `height` were, or where a picture that it is drawn from has the shape.';
export const widthOfDrawn =
  'Of each picture, in pixels, before it is enlarged. Where a picture from elsewhere decides, that is known once it is drawn.';

/** The parts of a drawing and its task that are shown. */
export type ShownDrawing = Omit<
  Drawing,
  'id' | 'finetuneId' | 'flaggedBy' | 'weightsHash' | 'weightsScale' | 'task'
> & {
  task: Pick<Task, 'model' | 'endUser' | 'status' | 'error'> & MeasuredTask;
};

/** The parts of a Generation that are shown. */
export type GenerationRecord = Pick<Generation, 'id' | 'webhook' | 'metadata'> & { drawing: ShownDrawing };

/** URLs of a drawing's pictures. */
export interface ShownPictures {
  /** In order of their seeds. */
  images: string[];
  /** That of the first. */
  thumbnail: string | null;
}

/** For what has not been drawn yet. */
export const noPictures: ShownPictures = { images: [], thumbnail: null };

/** A Generation in every route and in its webhook. */
export class GenerationDto {
  @Id() id: string;
  @Text() prompt: string;
  @TextOrNull() negative_prompt: string | null;
  @TextOrNull(shapeAsSent, { example: 'square' }) aspect_ratio: AspectRatio | null;
  @Integer(widthOfDrawn) width: number;
  @Integer('Of each picture, in pixels.') height: number;
  @TextOrNull('', { format: 'iri' }) webhook: string | null;
  @Text('The model that was asked for.') model: string;
  @Integer() num_generations: number;
  @OwnValue() metadata: Metadata | null;
  @TextOrNull('Whose the pictures are, as it was sent.') user: string | null;
  @TextOrNull('Why it failed, in plain words.') error: string | null;
  @Time('When the request was accepted.') started_at: string;
  @Word(taskStatuses, 'GenerationStatus') status: TaskStatus;
  @Texts('URLs of the pictures, in order of their seeds.') images: string[];
  @TextOrNull('URL of a WebP of the first picture, of at most 384 pixels; null until there is one.', { format: 'iri' })
  thumbnail: string | null;

  @Integer(filteredCount) filtered: number;
  @Integers(flaggedIndexes) flagged: number[];

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
  @TextOrNull('URL of the picture that it starts from, as it was sent.', { format: 'iri' }) image: string | null;
  @DecimalOrNull('The share of the steps that is drawn of `image`; null without one.') strength: number | null;
  @TextOrNull('URL of the picture that says what of `image` is repainted, as it was sent.', { format: 'iri' })
  mask: string | null;
  @PlaceOrNull() outpaint: true | PlaceInPicture | null;
  @Parts(UsedControlDto, 'The ControlNets that it follows.') control: UsedControlDto[];
  @Texts('URLs of the pictures that the model looks at, as they were sent.') references: string[];

  @IntegerOrNull(
    'Chunks in which the longer of prompt and negative prompt is read: of 75 tokens with Stable Diffusion; always 1 with FLUX.2, Z-Image and ERNIE-Image, which read a text at once; null for what was asked for before they were counted.',
  )
  prompt_chunks: number | null;

  @TextOrNull('What enlarged a high-resolution picture.') upscaler: string | null;
  @TextOrNull('Name and hash of the weights that draw it, once drawing has started.') served_by: string | null;
  @TimeOrNull('When it terminated.') completed_at: string | null;
  @PartOrNull(MetricsDto, 'How long it took; null before it has terminated.') metrics: MetricsDto | null;

  static from({ drawing, ...generation }: GenerationRecord, { images, thumbnail }: ShownPictures): GenerationDto {
    const { task } = drawing;
    return {
      id: generation.id,
      prompt: drawing.prompt,
      negative_prompt: drawing.negativePrompt,
      aspect_ratio: drawing.aspectRatio,
      width: drawing.width,
      height: drawing.height,
      webhook: generation.webhook,
      model: task.model,
      num_generations: drawing.numImages,
      metadata: generation.metadata,
      user: task.endUser,
      error: task.error,
      started_at: task.createdAt.toISOString(),
      status: task.status,
      images,
      thumbnail,
      filtered: drawing.filtered,
      flagged: drawing.flagged,
      cfg: drawing.cfg,
      steps: drawing.steps,
      seed: drawing.seed,
      scheduler: drawing.scheduler,
      high_resolution: drawing.highResolution,
      output_format: drawing.outputFormat,
      prompt_weighting: drawing.promptWeighting,
      finetunes: [...(drawing.inputs?.finetunes ?? [])],
      image: drawing.inputs?.image ?? null,
      strength: drawing.inputs?.strength ?? null,
      mask: drawing.inputs?.mask ?? null,
      outpaint: drawing.inputs?.outpaint ?? null,
      control: [...(drawing.inputs?.control ?? [])],
      references: [...(drawing.inputs?.references ?? [])],
      prompt_chunks: drawing.promptChunks,
      upscaler: drawing.upscaler,
      served_by: drawing.servedBy,
      completed_at: task.completedAt?.toISOString() ?? null,
      metrics: MetricsDto.of(task),
    };
  }
}
