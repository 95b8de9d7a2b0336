import type { AspectRatio } from '../common/aspect-ratio';
import { defaults, limits } from '../common/limits';
import type { Metadata } from '../common/metadata';
import { schedulerNames } from '../common/schedulers';
import {
  AspectRatioField,
  BooleanField,
  EnumField,
  MetadataField,
  NumberField,
  TextField,
  UrlField,
} from '../fields/fields';
import type { OutputFormat } from '../image-tasks/image-task';
import { outputFormats } from '../image-tasks/image-task';

/** Body of `POST /v1/sd/text-to-image`. */
export class CreateGenerationDto {
  @TextField({
    description: 'What the picture shows.',
    maxLength: limits.promptLength,
    example: 'a red circle on a blue background',
  })
  prompt: string;

  @TextField({
    description: 'What the picture must not show.',
    minLength: 0,
    maxLength: limits.promptLength,
    optional: true,
    nullable: true,
  })
  negative_prompt?: string | null;

  @AspectRatioField({
    description: 'Shape of the picture: square 512x512, portrait 512x768, landscape 768x512.',
    optional: true,
    default: defaults.aspectRatio,
  })
  aspect_ratio?: AspectRatio;

  @UrlField({
    description: 'Where the Generation is posted when it reaches a terminated status.',
    maxLength: limits.webhookLength,
    optional: true,
    nullable: true,
    example: 'https://example.com/hooks/darkroom',
  })
  webhook?: string | null;

  @TextField({
    description: 'Name of an installed model: sd1.5, sd2.1, shapes, or another that GET /v1/models lists.',
    maxLength: 64,
    pattern: /^[a-z0-9][a-z0-9._-]*$/,
    patternMessage: 'must be the name of a model, such as sd1.5',
    optional: true,
    default: defaults.model,
  })
  model?: string;

  @NumberField({
    description: 'How many pictures; picture i has the seed `seed + i`.',
    integer: true,
    ...limits.numGenerations,
    optional: true,
    default: defaults.numGenerations,
  })
  num_generations?: number;

  @MetadataField({
    description: 'A JSON object of your own, returned as it was sent.',
    optional: true,
    nullable: true,
    example: { order: 42 },
  })
  metadata?: Metadata | null;

  @NumberField({
    description: 'Guidance scale: how closely the picture follows the prompt.',
    ...limits.cfg,
    optional: true,
    default: defaults.cfg,
  })
  cfg?: number;

  @NumberField({
    description: 'Denoising steps.',
    integer: true,
    ...limits.steps,
    optional: true,
    default: defaults.steps,
  })
  steps?: number;

  @NumberField({
    description: 'Seed of the first picture; random when left out.',
    integer: true,
    min: 0,
    max: limits.seed,
    optional: true,
  })
  seed?: number;

  @EnumField({
    description: "Sampling method; the model's own when left out.",
    values: schedulerNames,
    name: 'Scheduler',
    optional: true,
    nullable: true,
  })
  scheduler?: string | null;

  @BooleanField({ description: 'Long edge of exactly 4096 pixels.', optional: true, default: defaults.highResolution })
  high_resolution?: boolean;

  @EnumField({
    description: 'File format of the pictures.',
    values: outputFormats,
    name: 'OutputFormat',
    optional: true,
    default: 'png',
  })
  output_format?: OutputFormat;

  @BooleanField({
    description: 'Whether `(word:1.3)` and `[word]` in the texts weigh words.',
    optional: true,
    default: false,
  })
  prompt_weighting?: boolean;
}
