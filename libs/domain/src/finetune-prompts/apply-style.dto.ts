import { limits } from '../common/limits';
import type { AspectRatio } from '../common/aspect-ratio';
import type { Metadata } from '../common/metadata';
import { Without } from '../fields/field-rule';
import { TextField } from '../fields/fields';
import { HighResolutionField, OwnMetadataField, SeedField, ShapeField, WebhookField } from '../fields/fields-in-common';

/** One element of the body of `POST /v1/finetunes/:id/styles`. */
@Without({
  num_generations: 'each element of the array draws one picture for each Style, so send more elements',
  scheduler: "the scheduler of the Fine-Tune's model draws",
})
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
