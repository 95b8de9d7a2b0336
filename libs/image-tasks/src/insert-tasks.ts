import type { FinetunePrompt, Generation, ImageTask } from '@app/domain';
import type { JobBackEnd, StatementClient } from '@app/queue';
import { jobIdOf } from '@app/queue';

/** What decides a picture, as it is asked for; every default is resolved. */
type Drawing = Pick<
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

/** A new task, and the row of the record that owns it: either, or in tests neither. */
export interface NewTask extends Drawing {
  sandbox: boolean;
  /** Wait before a sandbox task is settled. */
  delayMs?: number;
  generation?: Pick<Generation, 'webhook' | 'metadata'>;
  finetunePrompt?: Pick<FinetunePrompt, 'prompt' | 'metadata'>;
}

/** What one request makes: all of it or nothing. */
export interface NewTasks {
  ownerId: string;
  /** How many tasks of this owner may wait; 0: any number. */
  maxQueued: number;
  tasks: readonly NewTask[];
}

/** Whether a request was written. When not, its owner's key is revoked, or its cap has no room beside the `queued` tasks that wait. */
export type InsertOutcome = { admitted: true } | ({ admitted: false } & Refusal);

interface Refusal {
  revoked: boolean;
  queued: number;
}

/**
 * Everything that requests make: their tasks, the records that own them, their owners' places in the fair queue and the jobs. One round
 * trip serves one request or many; outside a transaction it is one of its own.
 */
const insert = { name: 'insert-tasks', text: 'SELECT * FROM insert_tasks($1)' };

/**
 * Writes what requests make. Requests of one owner are admitted in their order while its cap allows.
 * @returns one outcome for each. With a back end that has no rows the jobs are the caller's to add after the commit: `jobOf`.
 */
export async function insertTasks(
  client: StatementClient,
  jobs: JobBackEnd,
  works: readonly NewTasks[],
): Promise<InsertOutcome[]> {
  const { rows } = await client.query({ ...insert, values: [rowsOf(jobs, works)] });
  const refused = new Map((rows as RefusedRow[]).map(({ request, ...refusal }) => [request, refusal]));
  return works.map((_, request) => {
    const refusal = refused.get(request);
    return refusal ? { admitted: false, ...refusal } : { admitted: true };
  });
}

type RefusedRow = Refusal & { request: number };

/** Fields of the type `new_task` that are columns of a task. */
const columns: Readonly<Record<keyof Drawing | 'sandbox', string>> = {
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

/** The function's parameter: an array of its `new_task`. What has no field there would be left out without a word. */
function rowsOf(jobs: JobBackEnd, works: readonly NewTasks[]): string {
  const rows = works.flatMap(({ maxQueued, tasks }, request) =>
    tasks.map((task) => {
      const record = task.generation ?? task.finetunePrompt;
      return {
        ...Object.fromEntries(columnNames.map(([name, column]) => [column, task[name]])),
        request,
        max_queued: maxQueued,
        has_record: record !== undefined,
        webhook: task.generation?.webhook,
        prompt_as_sent: task.finetunePrompt?.prompt,
        metadata: record?.metadata,
        job: jobs.rowOf?.(...jobOf(task)),
      };
    }),
  );
  return JSON.stringify(rows);
}

/** The queue that a new task's job goes to, and the job. */
export function jobOf({ id, sandbox, delayMs }: Pick<NewTask, 'id' | 'sandbox' | 'delayMs'>) {
  const job = { id: jobIdOf(id, 1), data: { taskId: id }, ...(delayMs && { delayMs }) };
  return [sandbox ? 'sandbox' : 'images', job] as const;
}
