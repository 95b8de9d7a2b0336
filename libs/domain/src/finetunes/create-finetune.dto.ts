import { defaults, limits } from '../common/limits';
import type { Metadata } from '../common/metadata';
import { TextField, UrlArrayField } from '../fields/fields';
import { ModelField, OwnMetadataField } from '../fields/fields-in-common';

/** Body of `POST /v1/finetunes` that registers a Fine-Tune. */
export class CreateFinetuneDto {
  @TextField({
    description:
      'The class noun of the object, which every Prompt of the Fine-Tune must include. It has a letter or a digit.',
    maxLength: limits.nameLength,
    word: true,
    missingCode: 'FineTuneNameMissing',
    example: 'robot',
  })
  name: string;

  @TextField({
    description: 'A title of your own.',
    maxLength: limits.nameLength,
    optional: true,
    example: 'My tin robot',
  })
  title?: string | null;

  @TextField({
    description:
      'The word that calls the object; written right before the name where a Prompt lacks it. It has a letter or a digit.',
    maxLength: limits.tokenLength,
    word: true,
    pattern: /^\S+$/,
    patternMessage: 'must be one word without white space',
    optional: true,
    default: defaults.token,
  })
  token?: string;

  @ModelField('Name of the model that the weights were trained on.')
  model?: string;

  @OwnMetadataField()
  metadata?: Metadata | null;

  @UrlArrayField({
    description:
      'Pictures of the object. They are checked and not kept: training happens elsewhere, and PUT /v1/finetunes/{id}/weights takes its result.',
    documentedMin: limits.trainingImages.min,
    max: limits.trainingImages.max,
    maxLength: limits.webhookLength,
    optional: true,
  })
  images_url?: string[];
}
