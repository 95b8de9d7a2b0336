import { limits } from '../common/limits';
import type { AspectRatio } from '../common/aspect-ratio';
import type { Metadata } from '../common/metadata';
import { TextField } from '../fields/fields';
import { HighResolutionField, OwnMetadataField, SeedField, ShapeField, WebhookField } from '../fields/fields-in-common';

/** One element of the body of `POST /v1/finetunes/:id/styles`. */
export class ApplyStyleDto {
  @TextField({
    description: 'A Style, or a Collection, which applies each of its Styles in their order.',
    maxLength: limits.nameLength,
  })
  id: string;

  @SeedField('each picture')
  seed?: number;

  @HighResolutionField()
  high_resolution?: boolean;

  @ShapeField('the pictures', { asSent: true })
  aspect_ratio?: AspectRatio | [AspectRatio];

  @OwnMetadataField()
  metadata?: Metadata | null;

  @WebhookField('each Prompt')
  webhook?: string | null;
}
