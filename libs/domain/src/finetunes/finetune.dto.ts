import { ApiProperty } from '@nestjs/swagger';
import { defaults, limits } from '../common/limits';
import type { Metadata } from '../common/column';
import { NumberField, TextField, UrlArrayField } from '../fields/fields';
import { ModelField, OwnMetadataField } from '../fields/fields-in-common';
import { Without } from '../fields/field-rule';
import {
  type Finetune,
  type FinetuneStatus,
  finetuneStatuses,
  type FinetuneWeightsKind,
  finetuneWeightsKinds,
} from './finetune';
import {
  Decimal,
  Id,
  IntegerOrNull,
  OwnObjectOrNull,
  PartOrNull,
  Text,
  TextOrNull,
  Time,
  Word,
} from '../fields/fields-of-answers';

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

  @ModelField('Name of the model that the weights were trained on.') model?: string;
  @OwnMetadataField() metadata?: Metadata | null;

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

  @OwnMetadataField() metadata?: Metadata;

  @NumberField({
    description:
      'By how much its LoRA changes the model. It needs weights. Prompts that were accepted before keep the scale of then.',
    ...limits.weightsScale,
    optional: true,
    example: 0.8,
  })
  scale?: number;
}

/** The weights of a Fine-Tune. */
export class FinetuneWeightsDto {
  @Word(finetuneWeightsKinds, 'FinetuneWeightsKind') kind: FinetuneWeightsKind;
  @Text('SHA-256 of the uploaded file, in hexadecimal.') sha256: string;
  @IntegerOrNull('Size of the uploaded file.') bytes: number | null;
  @Decimal('By how much a LoRA changes the model.') scale: number;
  @TextOrNull('Name and hash of the model that they were checked against; null where that was not recorded.')
  base: string | null;
}

/** A Fine-Tune as every route shows it. */
export class FinetuneDto {
  @Id() id: string;
  @TextOrNull() title: string | null;
  @Text('The class noun that every Prompt must include.') name: string;
  @Text('The word that calls the object.') token: string;
  @Text() model: string;

  @Word(
    [...finetuneStatuses, 'stale'],
    'FinetuneStatus',
    'registered: drawn by the model alone; ready: its weights are there; stale: they are, but the model was replaced or removed since they were checked.',
  )
  status: FinetuneStatus | 'stale';

  @PartOrNull(FinetuneWeightsDto, 'What was uploaded; null before that.') weights: FinetuneWeightsDto | null;
  @OwnObjectOrNull() metadata: Metadata | null;
  @TextOrNull() error_message: string | null;

  @TextOrNull(
    'A sentence for people about what is left to do before it is drawn as it is meant to be: where it has no weights, where it is `stale`, after `images_url`, or where something about its weights had to be assumed. Null if nothing is.',
  )
  note: string | null;

  @Time('When the request was accepted.') created_at: string;

  /** @param base `<model>@<hash>` of the model that draws it now; undefined if there is none. */
  static from(finetune: Finetune, base: string | undefined): FinetuneDto {
    const isStale = finetune.isStale(base);
    const note = finetune.weightsHash === null ? noWeightsNote(finetune.id) : finetune.weightsNote;
    return {
      id: finetune.id,
      title: finetune.title,
      name: finetune.name,
      token: finetune.token,
      model: finetune.model,
      status: isStale ? 'stale' : finetune.status,
      weights: weightsOf(finetune),
      metadata: finetune.metadata,
      error_message: finetune.errorMessage,
      note: isStale ? staleNote(finetune, base) : note,
      created_at: finetune.createdAt.toISOString(),
    };
  }
}

/**
 * A Fine-Tune as the answer to its registration: its status tells it from a Generation, which the same
 * route may answer with.
 */
export class RegisteredFinetuneDto extends FinetuneDto {
  @ApiProperty({ enum: ['registered'], enumName: 'RegisteredFinetuneStatus' }) override status: 'registered';
}

function weightsOf(finetune: Finetune): FinetuneWeightsDto | null {
  const { weightsKind: kind, weightsHash: sha256 } = finetune;
  if (kind === null || sha256 === null) return null;
  return { kind, sha256, bytes: finetune.weightsBytes, scale: finetune.weightsScale, base: finetune.weightsBase };
}

/** What is said of a Fine-Tune without weights. */
function noWeightsNote(id: string): string {
  return `It has no weights, so the model alone draws its Prompts. PUT /v1/finetunes/${id}/weights takes weights that were trained elsewhere.`;
}

/**
 * What is said of a Fine-Tune whose base model was replaced, or is gone.
 * @param base `<model>@<hash>` that draws now, if there is one.
 */
export function staleNote(
  { id, model, weightsBase }: Pick<Finetune, 'id' | 'model' | 'weightsBase'>,
  base: string | undefined,
): string {
  if (base === undefined)
    return `The model ${model} is not installed any more, or cannot be drawn with, so Prompts are refused. The weights were checked against ${weightsBase}; when that is back, they are ready again.`;
  return `The model ${model} was replaced since the weights were checked against ${weightsBase}. PUT /v1/finetunes/${id}/weights checks them, or others, against the present one.`;
}
