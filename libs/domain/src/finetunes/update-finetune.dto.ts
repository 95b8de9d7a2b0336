import { limits } from '../common/limits';
import type { Metadata } from '../common/metadata';
import { Without } from '../fields/field-rule';
import { NumberField, TextField } from '../fields/fields';
import { OwnMetadataField } from '../fields/fields-in-common';

const cannotBeChanged = 'it cannot be changed; register another Fine-Tune';

/** Body of `PATCH /v1/finetunes/:id`: what is left out, or null, stays. */
@Without({ name: cannotBeChanged, token: cannotBeChanged, model: cannotBeChanged })
export class UpdateFinetuneDto {
  @TextField({
    description: 'A title of your own; an empty one removes it.',
    minLength: 0,
    maxLength: limits.nameLength,
    optional: true,
    example: 'My tin robot',
  })
  title?: string;

  @OwnMetadataField()
  metadata?: Metadata;

  @NumberField({
    description:
      'By how much its LoRA changes the model. It needs weights. Prompts that were accepted before keep the scale of then.',
    ...limits.weightsScale,
    optional: true,
    example: 0.8,
  })
  scale?: number;
}
