import { ApiPropertyOptional, IntersectionType } from '@nestjs/swagger';
import type { AspectRatio } from '../common/sizes';
import type { Metadata } from '../common/column';
import { shapeSchema } from '../fields/fields';
import { shapeAsSent, type ShownDrawing, type ShownPictures, widthOfDrawn } from '../generations/generation.dto';
import { PlaceOrNull, UsedControlDto } from '../generations/inputs.dto';
import { type OutputFormat, outputFormats } from '../tasks/drawing';
import type { DrawingInputs, PlaceInPicture } from '../tasks/drawing-inputs';
import { filteredCount, flaggedIndexes } from '../tasks/filtered';
import { MetricsDto } from '../tasks/metrics.dto';
import { type TaskStatus, taskStatuses } from '../tasks/task-status';
import type { FinetunePrompt } from './finetune-prompt';
import {
  Decimal,
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

/** The parts of a Prompt that are shown. */
export type ShownPrompt = Pick<FinetunePrompt, 'id' | 'prompt' | 'metadata'> & {
  drawing: Pick<
    ShownDrawing,
    'negativePrompt' | 'cfg' | 'steps' | 'seed' | 'highResolution' | 'aspectRatio' | 'inputs'
  > & {
    task: Pick<ShownDrawing['task'], 'error' | 'createdAt'>;
  };
};

const ofSent = (what: string): string => `${what}; absent where none was sent.`;

type SentPictures = Pick<PromptFields, 'image' | 'strength' | 'mask' | 'outpaint' | 'references'>;

function sentPictures(inputs: DrawingInputs | null): SentPictures {
  const { image, strength, mask, outpaint, references } = inputs ?? {};
  return {
    ...(image !== undefined && { image, strength: strength! }),
    ...(mask !== undefined && { mask }),
    ...(outpaint !== undefined && { outpaint }),
    ...(references !== undefined && { references: [...references] }),
  };
}

abstract class PromptFields {
  @Id() id: string;
  @Text('The text as it was sent.') prompt: string;
  @TextOrNull() negative_prompt: string | null;
  @Integer() steps: number;
  @YesNo() high_resolution: boolean;
  @TextOrNull(shapeAsSent, { example: 'square' }) aspect_ratio: AspectRatio | null;
  @Texts('URLs of its pictures; empty until it is drawn.') images: string[];
  @OwnValue() metadata: Metadata | null;
  @TextOrNull('Why it failed, in plain words.') error_message: string | null;
  @Time('When the request was accepted.') created_at: string;
  @Text(ofSent('URL of the picture that it starts from'), { format: 'iri', required: false }) image?: string;
  @Decimal(ofSent('The share of the steps that is drawn of `image`'), { required: false }) strength?: number;
  @Text(ofSent('URL of the picture that says what of `image` is repainted'), { format: 'iri', required: false })
  mask?: string;
  @PlaceOrNull({ required: false }) outpaint?: true | PlaceInPicture;
  @Texts(ofSent('URLs of the pictures that the model looks at'), { required: false }) references?: string[];
}

/** A Prompt in a list or on its own. */
export class PromptDto extends PromptFields {
  @Decimal() cfg: number;
  @Integer() seed: number;

  /**
   * @param prompt with its drawing loaded.
   * @param imageUrls in the order of the task's images.
   */
  static from({ drawing, ...prompt }: ShownPrompt, imageUrls: string[]): PromptDto {
    return {
      id: prompt.id,
      prompt: prompt.prompt,
      negative_prompt: drawing.negativePrompt,
      cfg: drawing.cfg,
      steps: drawing.steps,
      seed: drawing.seed,
      high_resolution: drawing.highResolution,
      aspect_ratio: drawing.aspectRatio,
      images: imageUrls,
      metadata: prompt.metadata,
      error_message: drawing.task.error,
      created_at: drawing.task.createdAt.toISOString(),
      ...sentPictures(drawing.inputs),
    };
  }
}

/** A Prompt in the response to its creation, where `cfg` and `seed` are strings. */
export class CreatedPromptDto extends PromptFields {
  @Text('The shortest decimal.', { pattern: String.raw`^\d+(\.\d+)?$`, example: '7.5' }) cfg: string;
  @Text('', { pattern: String.raw`^\d+$`, example: '1234567890' }) seed: string;

  static from(prompt: ShownPrompt): CreatedPromptDto {
    const { cfg, seed, ...rest } = PromptDto.from(prompt, []);
    return { ...rest, cfg: String(cfg), seed: String(seed) };
  }
}

/** A Prompt made from a Style: its identifying fields, and only what was sent with the Style. */
export class PartialPromptDto {
  @Id() id: string;
  @TextOrNull() error_message: string | null;
  @Texts() images: string[];
  @Time() created_at: string;
  @Integer('', { required: false }) seed?: number;
  @YesNo('', { required: false }) high_resolution?: boolean;

  @ApiPropertyOptional(shapeSchema) aspect_ratio?: AspectRatio | [AspectRatio];
  @Integer('', { required: false }) width?: number;
  @Integer('', { required: false }) height?: number;

  @OwnValue('', { required: false }) metadata?: Metadata | null;
}

interface TaskPlace extends Pick<ShownPictures, 'thumbnail'> {
  queuePosition: number | null;
  step: number | null;
}

type StatusDrawing = Pick<
  ShownDrawing,
  | 'steps'
  | 'width'
  | 'height'
  | 'numImages'
  | 'scheduler'
  | 'outputFormat'
  | 'promptWeighting'
  | 'inputs'
  | 'servedBy'
  | 'upscaler'
  | 'promptChunks'
  | 'filtered'
  | 'flagged'
  | 'task'
>;

/** What a Prompt's own fields do not tell, and does not change once it has terminated. */
abstract class StatusFields {
  @Word(taskStatuses, 'GenerationStatus') status: TaskStatus;
  @Integer('How many pictures were asked for.') num_generations: number;
  @Integer(widthOfDrawn) width: number;
  @Integer('Of each picture, in pixels.') height: number;
  @TextOrNull("The sampling method, as in a Generation: null is the model's own.") scheduler: string | null;
  @Word(outputFormats, 'OutputFormat') output_format: OutputFormat;
  @YesNo() prompt_weighting: boolean;
  @Parts(UsedControlDto, 'The ControlNets that it follows.') control: UsedControlDto[];
  @TextOrNull('Whose the pictures are, as it was sent.') user: string | null;
  @TextOrNull('Name and hash of the weights that draw it, once drawing has started.') served_by: string | null;
  @TextOrNull('What enlarged a high-resolution picture.') upscaler: string | null;
  @IntegerOrNull(
    'Chunks in which the longer of prompt and negative prompt is read: of 75 tokens with Stable Diffusion; always 1 with FLUX.2, Z-Image and ERNIE-Image, which read a text at once.',
  )
  prompt_chunks: number | null;
  @Integer(filteredCount) filtered: number;
  @Integers(flaggedIndexes) flagged: number[];
  @Time('When the request was accepted.') started_at: string;
  @TimeOrNull('When it terminated.') completed_at: string | null;
  @PartOrNull(MetricsDto, 'How long it took; null before it has terminated.') metrics: MetricsDto | null;
  @TextOrNull('URL of a WebP of its first picture, of at most 384 pixels; null until there is one.', { format: 'iri' })
  thumbnail: string | null;
}

function statusOf({ task, ...drawing }: StatusDrawing, thumbnail: string | null): StatusFields {
  return {
    status: task.status,
    num_generations: drawing.numImages,
    width: drawing.width,
    height: drawing.height,
    scheduler: drawing.scheduler,
    output_format: drawing.outputFormat,
    prompt_weighting: drawing.promptWeighting,
    control: [...(drawing.inputs?.control ?? [])],
    user: task.endUser,
    served_by: drawing.servedBy,
    upscaler: drawing.upscaler,
    prompt_chunks: drawing.promptChunks,
    filtered: drawing.filtered,
    flagged: drawing.flagged,
    started_at: task.createdAt.toISOString(),
    completed_at: task.completedAt?.toISOString() ?? null,
    metrics: MetricsDto.of(task),
    thumbnail,
  };
}

/** Progress and other facts for which a Prompt has no fields. */
export class PromptStatusDto extends StatusFields {
  @IntegerOrNull('How many are likely to be drawn before it; null once it is drawn.', { minimum: 0, example: 2 })
  queue_position: number | null;

  @IntegerOrNull(
    'Steps that are done: 0 while it waits, and all of them once it has succeeded; null while it is prepared, ' +
      'for a moment after the api has started again, and if it has failed or is canceled.',
    { minimum: 0, example: 12 },
  )
  step: number | null;

  @Integer('Steps as requested.') steps: number;

  static of(drawing: StatusDrawing, { queuePosition, step, thumbnail }: TaskPlace): PromptStatusDto {
    const { steps, task } = drawing;
    return {
      ...statusOf(drawing, thumbnail),
      queue_position: task.status === 'queued' ? queuePosition : null,
      step: task.status === 'succeeded' ? steps : task.status === 'queued' ? 0 : step,
      steps,
    };
  }
}

/** A Prompt together with its status: in the last event of its stream, and canceled. */
export class TerminatedPromptDto extends IntersectionType(PromptDto, StatusFields as new () => StatusFields) {
  /** @param prompt with its drawing loaded. */
  static ended(
    prompt: ShownPrompt & { drawing: StatusDrawing },
    { images, thumbnail }: ShownPictures,
  ): TerminatedPromptDto {
    return { ...PromptDto.from(prompt, images), ...statusOf(prompt.drawing, thumbnail) };
  }
}
