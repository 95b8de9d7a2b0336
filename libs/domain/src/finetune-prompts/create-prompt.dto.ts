import type { AspectRatio } from '../common/aspect-ratio';
import { defaults, limits } from '../common/limits';
import type { Metadata } from '../common/metadata';
import { AspectRatioField, BooleanField, MetadataField, NumberField, TextField } from '../fields/fields';

/** One element of the body of `POST /v1/finetunes/:id/prompts`. */
export class CreatePromptDto {
  @TextField({
    description: "What the picture shows; it includes the Fine-Tune's name as a word.",
    maxLength: limits.promptLength,
    example: 'a robot on a striped background',
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
    description: 'Seed of the picture; random when left out.',
    integer: true,
    min: 0,
    max: limits.seed,
    optional: true,
  })
  seed?: number;

  @BooleanField({ description: 'Long edge of exactly 4096 pixels.', optional: true, default: defaults.highResolution })
  high_resolution?: boolean;

  @AspectRatioField({
    description: 'Shape of the picture: square 512x512, portrait 512x768, landscape 768x512.',
    optional: true,
    default: defaults.aspectRatio,
  })
  aspect_ratio?: AspectRatio;

  @MetadataField({
    description: 'A JSON object of your own, returned as it was sent.',
    optional: true,
    nullable: true,
    example: { order: 42 },
  })
  metadata?: Metadata | null;
}
