import { ApiProperty } from '@nestjs/swagger';
import type { Metadata } from '../common/column';
import type { TaskStatus } from '../tasks/task-status';
import {
  type Finetune,
  type FinetuneStatus,
  finetuneStatuses,
  type FinetuneWeightsKind,
  finetuneWeightsKinds,
} from './finetune';
import type { Training } from './training';
import {
  Decimal,
  Id,
  Integer,
  IntegerOrNull,
  OwnValue,
  PartOrNull,
  Text,
  TextOrNull,
  Texts,
  Time,
  TimeOrNull,
  Word,
} from '../fields/fields-of-answers';

/** The weights of a Fine-Tune. */
export class FinetuneWeightsDto {
  @Word(finetuneWeightsKinds, 'FinetuneWeightsKind') kind: FinetuneWeightsKind;
  @Text('SHA-256 of the file, in hexadecimal.') sha256: string;
  @IntegerOrNull('Size of the file.') bytes: number | null;
  @Decimal('By how much a LoRA changes the model.') scale: number;
  @TextOrNull('Name and hash of the model that they were checked against; null where that was not recorded.')
  base: string | null;
  @IntegerOrNull(
    'Tensors of the file that met no layer of the model, and change nothing; `note` names one. Null where that was not recorded.',
  )
  unmatched: number | null;
}

/** The training of a Fine-Tune. */
export class TrainingDto {
  @Integer('Pictures that it is trained from.') images: number;
  @Integer('Steps of the training.') steps: number;
  @Integer('Steps that are done.', { minimum: 0 }) step: number;
  @Integer() seed: number;
  @TimeOrNull('When a worker began with it.') started_at: string | null;
  @TimeOrNull('When it terminated.') completed_at: string | null;
  @Decimal('Seconds of compute that it took so far.', { minimum: 0 }) compute_seconds: number;

  static from({ imagesUrl, steps, step, seed, computeSeconds, task }: Training): TrainingDto {
    return {
      images: imagesUrl.length,
      steps,
      step,
      seed,
      started_at: task.startedAt?.toISOString() ?? null,
      completed_at: task.completedAt?.toISOString() ?? null,
      compute_seconds: computeSeconds,
    };
  }
}

/** Further facts that are shown of a Fine-Tune. */
export interface ShownWith {
  /** `<model>@<hash>` of the model that draws it now; undefined if there is none. */
  base: string | undefined;
  /** With its task; undefined if it was neither trained here nor its weights fetched. */
  training?: Training | undefined;
  /** Of the Prompts that were asked for with the training and still exist. */
  promptIds?: readonly string[];
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
    'registered: drawn by the model alone; queued, training: its weights are being made or, while queued, fetched; ready: its weights are there; failed, canceled: that ended without any; stale: they are there, but the model was replaced or removed since.',
  )
  status: FinetuneStatus | 'stale';

  @PartOrNull(FinetuneWeightsDto, 'What was trained, uploaded or fetched; null before that.')
  weights: FinetuneWeightsDto | null;
  @PartOrNull(TrainingDto, 'Its training; null if it was not trained here.') training: TrainingDto | null;
  @Texts('Ids of the Prompts that were asked for with its training, or with its `weights_url`.') prompts: string[];
  @TextOrNull('Whose it is, as it was sent with its training or its `weights_url`.') user: string | null;
  @OwnValue() metadata: Metadata | null;
  @TextOrNull('Why its training failed, or why its weights could not be fetched, in plain words.') error_message:
    string | null;

  @TextOrNull(
    'A sentence for people about what is left to do before it is drawn as it is meant to be: where it has no weights, where it is `stale`, or where something about its weights or its training had to be assumed. Null if nothing is.',
  )
  note: string | null;

  @Time('When the request was accepted.') created_at: string;

  static from(finetune: Finetune, { base, training, promptIds = [] }: ShownWith): FinetuneDto {
    const isStale = finetune.isStale(base);
    return {
      id: finetune.id,
      title: finetune.title,
      name: finetune.name,
      token: finetune.token,
      model: finetune.model,
      status: isStale ? 'stale' : statusOf(finetune, training),
      weights: weightsOf(finetune),
      training: training && training.weightsUrl === null ? TrainingDto.from(training) : null,
      prompts: [...promptIds],
      user: training?.task.endUser ?? null,
      metadata: finetune.metadata,
      error_message: finetune.weightsHash === null && training ? training.task.error : null,
      note: isStale ? staleNote(finetune, base) : noteOf(finetune, training),
      created_at: finetune.createdAt.toISOString(),
    };
  }
}

/** The answer to the request that registers a Fine-Tune, or has it trained. */
export class RegisteredFinetuneDto extends FinetuneDto {
  @ApiProperty({ enum: ['registered', 'queued'], enumName: 'RegisteredFinetuneStatus' })
  override status: 'registered' | 'queued';
}

const statusOfTraining: Readonly<Record<TaskStatus, FinetuneStatus>> = {
  queued: 'queued',
  processing: 'training',
  succeeded: 'ready',
  failed: 'failed',
  canceled: 'canceled',
};

/** Weights that are uploaded afterwards override the outcome. */
function statusOf(finetune: Finetune, training: Training | undefined): FinetuneStatus {
  if (finetune.weightsHash !== null || !training) return finetune.status;
  const status = statusOfTraining[training.task.status];
  return status === 'training' && training.weightsUrl !== null ? 'queued' : status;
}

function weightsOf(finetune: Finetune): FinetuneWeightsDto | null {
  const { weightsKind: kind, weightsHash: sha256 } = finetune;
  if (kind === null || sha256 === null) return null;
  const { weightsBytes: bytes, weightsScale: scale, weightsBase: base, weightsUnmatched: unmatched } = finetune;
  return { kind, sha256, bytes, scale, base, unmatched };
}

function noteOf({ id, weightsHash, weightsNote }: Finetune, training: Training | undefined): string | null {
  if (weightsHash === null && training === undefined) return noWeightsNote(id);
  return [training?.note, weightsNote].filter((note) => typeof note === 'string').join(' ') || null;
}

function noWeightsNote(id: string): string {
  return `It has no weights, so the model alone draws its Prompts. PUT /v1/finetunes/${id}/weights takes weights that were trained elsewhere.`;
}

/** @param base `<model>@<hash>` that draws now, if there is one. */
export function staleNote(
  { id, model, weightsBase }: Pick<Finetune, 'id' | 'model' | 'weightsBase'>,
  base: string | undefined,
): string {
  if (base === undefined)
    return `The model ${model} is not installed any more, or cannot be drawn with, so Prompts are refused. The weights were checked against ${weightsBase}; when that is back, they are ready again.`;
  return `The model ${model} was replaced since the weights were checked against ${weightsBase}. PUT /v1/finetunes/${id}/weights checks them, or others, against the present one.`;
}
