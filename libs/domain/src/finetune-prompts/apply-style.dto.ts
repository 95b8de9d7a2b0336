import { defaults, limits } from '../common/limits';
import type { AspectRatio } from '../common/aspect-ratio';
import type { Metadata } from '../common/metadata';
import { AspectRatioField, BooleanField, MetadataField, NumberField, TextField } from '../fields/fields';

/** One element of the body of `POST /v1/finetunes/:id/styles`. */
export class ApplyStyleDto {
  @TextField({
    description: 'A Style, or a Collection, which applies each of its Styles in their order.',
    maxLength: limits.nameLength,
  })
  id: string;

  @NumberField({
    description: 'Seed of each picture; random when left out.',
    integer: true,
    min: 0,
    max: limits.seed,
    optional: true,
  })
  seed?: number;

  @BooleanField({ description: 'Long edge of exactly 4096 pixels.', optional: true, default: defaults.highResolution })
  high_resolution?: boolean;

  @AspectRatioField({
    asSent: true,
    description: 'Shape of the pictures: square 512x512, portrait 512x768, landscape 768x512.',
    optional: true,
    default: defaults.aspectRatio,
  })
  aspect_ratio?: AspectRatio | [AspectRatio];

  @MetadataField({
    description: 'A JSON object of your own, returned as it was sent.',
    optional: true,
    nullable: true,
    example: { order: 42 },
  })
  metadata?: Metadata | null;
}
