import type { FinetunePrompt, Generation, ImageTask } from '@app/domain';
import type { Transactions, WakeUps } from '@app/queue';
import { afterCommit } from '@app/queue';

/** The parameters of a drawing, with every default resolved. */
type DrawingParameters = Pick<
  ImageTask,
  | 'id'
  | 'kind'
  | 'ownerId'
  | 'finetuneId'
  | 'prompt'
  | 'negativePrompt'
  | 'cfg'
  | 'steps'
  | 'seed'
  | 'scheduler'
  | 'model'
  | 'aspectRatio'
  | 'highResolution'
  | 'outputFormat'
  | 'promptWeighting'
  | 'numImages'
  | 'promptChunks'
  | 'createdAt'
>;

/** A new task and the record that owns it; only tests omit the record. */
export interface NewTask extends DrawingParameters {
  sandbox: boolean;
  generation?: Pick<Generation, 'webhook' | 'metadata'>;
  finetunePrompt?: Pick<FinetunePrompt, 'prompt' | 'webhook' | 'metadata'>;
}

/** Everything one request inserts: all of it or nothing. */
export interface NewTasks {
  ownerId: string;
  /** How many tasks of this owner may wait; 0: no limit. */
  maxQueued: number;
  tasks: readonly NewTask[];
}

/**
 * Whether a request was inserted. If not, its owner's key is revoked, or its limit has no room beside the
 * `queued` tasks that wait.
 */
export type InsertOutcome = { admitted: true } | ({ admitted: false } & Refusal);

interface Refusal {
  revoked: boolean;
  queued: number;
}

/** Writes what a request makes: its tasks, the records that own them, and its owner's place in the fair queue. */
export class TaskIntake {
  constructor(
    private readonly transactions: Transactions,
    private readonly wakeUps: WakeUps,
  ) {}

  /** Resolves when everything is committed and a worker is about to be woken, or when there is no room for it. */
  async insert(work: NewTasks): Promise<InsertOutcome> {
    const outcome = await this.transactions.run(async (manager): Promise<InsertOutcome> => {
      const [refusal] = await manager.query<Refusal[]>('SELECT * FROM insert_tasks($1)', [rowsOf(work)]);
      if (refusal) return { admitted: false, revoked: refusal.revoked, queued: refusal.queued };
      return { admitted: true };
    });
    if (outcome.admitted) await afterCommit(async () => this.wakeUps.ask());
    return outcome;
  }
}

/** Fields of the database type `new_task` that are columns of a task. */
const columns: Readonly<Record<keyof DrawingParameters | 'sandbox', string>> = {
  id: 'id',
  kind: 'kind',
  ownerId: 'owner_id',
  finetuneId: 'finetune_id',
  prompt: 'prompt',
  negativePrompt: 'negative_prompt',
  cfg: 'cfg',
  steps: 'steps',
  seed: 'seed',
  scheduler: 'scheduler',
  model: 'model',
  aspectRatio: 'aspect_ratio',
  highResolution: 'high_resolution',
  outputFormat: 'output_format',
  promptWeighting: 'prompt_weighting',
  numImages: 'num_images',
  promptChunks: 'prompt_chunks',
  sandbox: 'sandbox',
  createdAt: 'created_at',
};
const columnNames = Object.entries(columns) as [keyof typeof columns, string][];

/**
 * The function's parameter: an array of the type `new_task`. A key without a field in that type
 * would be dropped silently.
 */
function rowsOf({ maxQueued, tasks }: NewTasks): string {
  const rows = tasks.map((task) => {
    const record = task.generation ?? task.finetunePrompt;
    return {
      ...Object.fromEntries(columnNames.map(([name, column]) => [column, task[name]])),
      request: 0,
      max_queued: maxQueued,
      has_record: record !== undefined,
      webhook: record?.webhook,
      prompt_as_sent: task.finetunePrompt?.prompt,
      metadata: record?.metadata,
    };
  });
  return JSON.stringify(rows);
}
