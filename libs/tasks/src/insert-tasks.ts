import type { FinetunePrompt, Generation, ImageTask } from '@app/domain';
import type { JobBackEnd, StatementClient } from '@app/queue';
import { jobIdOf } from '@app/queue';

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

/**
 * Inserts what requests make: tasks, the records that own them, their owners' places in the fair queue, and the jobs.
 * One round trip serves one request or many; outside a transaction it is a transaction of its own.
 */
const insert = { name: 'insert-tasks', text: 'SELECT * FROM insert_tasks($1)' };

/**
 * Inserts what requests make. Requests of one owner are admitted in order as long as its limit allows.
 * @returns one outcome per request. If the back end does not store jobs as rows, the caller adds them
 * after the commit: `jobOf`.
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
function rowsOf(jobs: JobBackEnd, works: readonly NewTasks[]): string {
  const rows = works.flatMap(({ maxQueued, tasks }, request) =>
    tasks.map((task) => {
      const record = task.generation ?? task.finetunePrompt;
      return {
        ...Object.fromEntries(columnNames.map(([name, column]) => [column, task[name]])),
        request,
        max_queued: maxQueued,
        has_record: record !== undefined,
        webhook: record?.webhook,
        prompt_as_sent: task.finetunePrompt?.prompt,
        metadata: record?.metadata,
        job: task.sandbox ? undefined : jobs.rowOf?.('images', jobOf(task)),
      };
    }),
  );
  return JSON.stringify(rows);
}

/** The job of a new task; one of a sandbox key has none. */
export function jobOf({ id }: Pick<NewTask, 'id'>) {
  return { id: jobIdOf(id, 1), data: { taskId: id } };
}
