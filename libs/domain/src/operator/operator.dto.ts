import { type TaskKind, taskKinds } from '../tasks/task';
import { type InferenceWorker, type SigningState, signingStates } from '../inference-workers/inference-worker';
import { type WebhookDeliveryStatus, webhookDeliveryStatuses } from '../webhooks/webhook-delivery';
import { WebhookAttemptDto } from '../webhooks/webhook-delivery.dto';
import {
  Id,
  Integer,
  IntegerOrNull,
  PartOrNull,
  Parts,
  Text,
  TextOrNull,
  Texts,
  Time,
  TimeOrNull,
  Word,
} from '../fields/fields-of-answers';

/** The key that something belongs to. */
export class OfKey {
  @Id('Whose it is: the id of the API key.') key_id: string;
  @Text('The name of this key.', { example: 'web shop' }) key_name: string;
}

/** Waiting tasks of one key for one model. */
export class WaitingTasksDto extends OfKey {
  @Text() model: string;
  @Integer('How many wait.', { example: 12 }) queued: number;
  @Time('When the oldest of them was accepted.') oldest_at: string;
}

/** Work of a worker at the moment. */
export class DrawingTaskDto extends OfKey {
  @Id() id: string;
  @Word(taskKinds, 'TaskKind') kind: TaskKind;
  @Text() model: string;
  @Integer('Pictures to draw.', { example: 1 }) pictures: number;
  @Integer() steps: number;
  @Integer('How often a worker has taken it.', { example: 1 }) attempt: number;
  @Time('When the worker that draws it took it: the beginning of this attempt.') drawn_since: string;
}

/** Tasks that wait and that are drawn, without those of sandbox keys. */
export class QueueDto {
  @Integer('Generations, Prompts and trainings that wait.', { example: 12 }) queued: number;
  @Integer('Those that workers draw or train.', { example: 3 }) processing: number;
  @Integer('Webhook deliveries that are due.', { example: 0 }) deliveries_due: number;
  @Parts(WaitingTasksDto, 'What waits, by key and model; the 100 that wait longest.') waiting: WaitingTasksDto[];
  @Parts(DrawingTaskDto, 'What is drawn or trained; the 100 that began last.') drawing: DrawingTaskDto[];
}

/** A model in the memory of a device. */
export class LoadedModelDto {
  @Text('`<model>@<hash>`, followed by `+<kind>:<hash>` of the weights of a Fine-Tune.', {
    example: 'shapes@0123456789ab',
  })
  name: string;

  @Integer('Estimated memory.') bytes: number;
}

/** A device of a worker, and what it is at. */
export class WorkerDeviceDto {
  @Text('cpu, webgpu or cuda:<n>.', { example: 'cuda:0' }) name: string;
  @Integer('Generations and Prompts that it draws side by side.', { example: 3 }) tasks: number;
  @Integer('The batch: how many pictures its last step moved on together; 0 while it draws nothing.', { example: 4 })
  batch: number;
  @IntegerOrNull('Milliseconds of this step; null while it draws nothing.', { example: 180 }) step_ms: number | null;
  @Parts(LoadedModelDto, 'What it has loaded.') loaded: LoadedModelDto[];
  @Integer('Estimated memory of all loaded models.') memory_bytes: number;
  @Integer('Memory that models and drawing may take.', { example: 8_000_000_000 }) memory_limit_bytes: number;
}

/** A running worker. */
export class WorkerDto {
  @Id() id: string;
  @Parts(WorkerDeviceDto, 'One of an older version says nothing of them.') devices: WorkerDeviceDto[];

  @Texts('Names of the models that it can draw now, with those that its stand-in draws for.', {
    example: ['shapes', 'sd1.5'],
  })
  models: string[];

  @Word(signingStates, 'SigningState', 'Whether it signs the pictures that it draws.') credentials: SigningState;
  @TextOrNull('Why it cannot sign at the moment.') credentials_problem: string | null;
  @Time() started_at: string;
  @Time('When it last said that it is there.') heartbeat_at: string;

  static from({ id, engines, models, credentials, startedAt, heartbeatAt }: InferenceWorker): WorkerDto {
    return {
      id,
      devices: (engines ?? []).map(({ device, tasks, pictures, stepMs, loaded, memoryBytes }) => ({
        name: device,
        tasks,
        batch: pictures,
        step_ms: stepMs,
        loaded,
        memory_bytes: loaded.reduce((sum, { bytes }) => sum + bytes, 0),
        memory_limit_bytes: memoryBytes,
      })),
      models: models ?? [],
      credentials: credentials ? (credentials.problem === null ? 'on' : 'failing') : 'off',
      credentials_problem: credentials?.problem ?? null,
      started_at: startedAt.toISOString(),
      heartbeat_at: heartbeatAt.toISOString(),
    };
  }
}

class StoredBytes {
  @Integer('Pictures.') picture_bytes: number;
  @Integer('Weights of Fine-Tunes.') weight_bytes: number;
  @Integer('Of the database, about, and thumbnails of Styles.') record_bytes: number;
  @Integer('Kept for uploads in progress, and for pictures that wait to be drawn.') upload_bytes: number;
}

/** Room that one key takes. */
export class KeyStorageDto extends StoredBytes {
  @Id('The id of the API key.') key_id: string;
  @Text('Its name.', { example: 'web shop' }) key_name: string;
  @IntegerOrNull('What it may store; null without a limit.') limit_bytes: number | null;
}

/** Room that all keys take, and the room that is left. */
export class StorageDto extends StoredBytes {
  @IntegerOrNull('Free room on the disk of the api process; the fullest, if it has several.')
  disk_free_bytes: number | null;
  @IntegerOrNull('The size of this disk.') disk_total_bytes: number | null;
  @Parts(KeyStorageDto, 'The 100 keys that store most.') keys: KeyStorageDto[];
}

/** A Generation or Prompt that failed. Its texts are its owner's alone. */
export class FailureDto extends OfKey {
  @Id() id: string;
  @Word(taskKinds, 'TaskKind') kind: TaskKind;
  @Text('The model that was asked for.') model: string;
  @TextOrNull('The weights that drew it, if drawing began.') served_by: string | null;
  @TextOrNull('The reason, as its owner reads it.', { example: 'The model sd2.1 is not installed.' })
  error: string | null;
  @Integer('How often a worker has taken it.', { example: 1 }) attempts: number;
  @Integer('How many workers ended while they drew it.', { example: 0 }) worker_deaths: number;
  @Time() created_at: string;
  @Time() completed_at: string;
}

/** A delivery to the webhook of some key. */
export class KeyDeliveryDto extends OfKey {
  @Id() id: string;
  @Id('The Generation or Prompt that it tells of.') record_id: string;
  @Word(taskKinds, 'TaskKind') kind: TaskKind;
  @Text('Where it goes, without the path, which may be a secret of its receiver.', { example: 'https://example.com' })
  receiver: string;
  @Word(webhookDeliveryStatuses, 'WebhookDeliveryStatus') status: WebhookDeliveryStatus;
  @Integer('Tries so far.', { example: 1 }) attempts: number;
  @PartOrNull(WebhookAttemptDto, 'The last try; null before the first.') last_attempt: WebhookAttemptDto | null;
  @TimeOrNull('When it is tried next.') next_attempt_at: string | null;
  @Time() created_at: string;
  @TimeOrNull('When it succeeded or was given up.') completed_at: string | null;
}
