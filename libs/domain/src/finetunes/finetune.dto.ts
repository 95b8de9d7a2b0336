import { ApiProperty } from '@nestjs/swagger';
import type { Metadata } from '../common/metadata';
import type { Finetune, FinetuneStatus, FinetuneWeightsKind } from './finetune';
import { finetuneStatuses, finetuneWeightsKinds } from './finetune';

/** The weights of a Fine-Tune. */
export class FinetuneWeightsDto {
  @ApiProperty({ enum: [...finetuneWeightsKinds], enumName: 'FinetuneWeightsKind' })
  kind: FinetuneWeightsKind;

  @ApiProperty({ type: String, description: 'SHA-256 of the uploaded file, in hexadecimal.' })
  sha256: string;

  @ApiProperty({ type: 'integer', nullable: true, description: 'Size of the uploaded file.' })
  bytes: number | null;

  @ApiProperty({ type: Number, description: 'By how much a LoRA changes the model.' })
  scale: number;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Name and hash of the model that they were checked against; null where that was not recorded.',
  })
  base: string | null;
}

/** A Fine-Tune as every route shows it. */
export class FinetuneDto {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24 })
  id: string;

  @ApiProperty({ type: String, nullable: true })
  title: string | null;

  @ApiProperty({ type: String, description: 'The class noun that every Prompt must include.' })
  name: string;

  @ApiProperty({ type: String, description: 'The word that calls the object.' })
  token: string;

  @ApiProperty({ type: String })
  model: string;

  @ApiProperty({
    enum: [...finetuneStatuses, 'stale'],
    enumName: 'FinetuneStatus',
    description:
      'registered: drawn by the model alone; ready: its weights are there; stale: they are, but the model was replaced or removed since they were checked.',
  })
  status: FinetuneStatus | 'stale';

  @ApiProperty({ type: FinetuneWeightsDto, nullable: true, description: 'What was uploaded; null before that.' })
  weights: FinetuneWeightsDto | null;

  @ApiProperty({ type: 'object', additionalProperties: true, nullable: true })
  metadata: Metadata | null;

  @ApiProperty({ type: String, nullable: true })
  error_message: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description:
      'A sentence for people about what is left to do before it is drawn as it is meant to be: where it has no weights, where it is `stale`, or after `images_url`. Null if nothing is.',
  })
  note: string | null;

  @ApiProperty({ type: String, format: 'date-time', description: 'When the request was accepted.' })
  created_at: string;

  /** @param base `<model>@<hash>` of the model that draws it now; undefined if there is none. */
  static from(finetune: Finetune, base: string | undefined): FinetuneDto {
    const isStale = finetune.isStale(base);
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
      note: isStale ? staleNote(finetune, base) : finetune.weightsHash === null ? noWeightsNote(finetune.id) : null,
      created_at: finetune.createdAt.toISOString(),
    };
  }
}

/**
 * A Fine-Tune as the answer to its registration: its status tells it from a Generation, which the same
 * route may answer with.
 */
export class RegisteredFinetuneDto extends FinetuneDto {
  @ApiProperty({ enum: ['registered'] })
  override status: 'registered';
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
