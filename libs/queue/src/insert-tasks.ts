import type { FinetunePrompt, Generation, ImageTask } from '@app/domain';
import type { ClientBase } from 'pg';
import { escapeLiteral } from 'pg';
import { waiting } from './fair-queue';
import type { JobBackEnd } from './job-back-end';
import { insertJobs, tellWorkers } from './job-rows';
import { jobIdOf } from './jobs';
import type { StatementClient } from './transactions';

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

/**
 * Whether a request was written; when not, its owner's key is revoked, or `queued` tasks of its owner wait, and these would have been
 * too many.
 */
export interface InsertOutcome {
  admitted: boolean;
  revoked: boolean;
  queued: number;
}

/** Columns of a new row of `image_tasks` that a request fills in, with their types, by the names that `NewTask` has for them. */
const columns: Readonly<Record<keyof Drawing | 'sandbox', readonly [column: string, type: string]>> = {
  id: ['id', 'varchar'],
  kind: ['kind', 'varchar'],
  ownerId: ['owner_id', 'varchar'],
  finetuneId: ['finetune_id', 'varchar'],
  prompt: ['prompt', 'text'],
  negativePrompt: ['negative_prompt', 'text'],
  cfg: ['cfg', 'double precision'],
  steps: ['steps', 'integer'],
  seed: ['seed', 'bigint'],
  scheduler: ['scheduler', 'varchar'],
  model: ['model', 'varchar'],
  aspectRatio: ['aspect_ratio', 'varchar'],
  highResolution: ['high_resolution', 'boolean'],
  outputFormat: ['output_format', 'varchar'],
  promptWeighting: ['prompt_weighting', 'boolean'],
  numImages: ['num_images', 'integer'],
  promptChunks: ['prompt_chunks', 'integer'],
  sandbox: ['sandbox', 'boolean'],
  createdAt: ['created_at', 'timestamptz'],
};
const given = Object.entries(columns).map(([name, [, type]]) => `"${name}" ${type}`);
const filled = Object.values(columns).map(([column]) => column);
const taken = Object.keys(columns).map((name) => `"${name}"`);

/** Whether the owner has a task for an engine: one look into an index for each owner, where a join would go through everybody's tasks. */
const hasTask = (status: string): string => `coalesce((
    SELECT true FROM image_tasks WHERE owner_id = "ownerId" AND status = '${status}' AND NOT sandbox LIMIT 1
  ), false)`;

/**
 * Everything that requests make, in one statement: their tasks, the records that own them, their owners' places in the fair queue and
 * the jobs. One round trip serves one request or many; the rows come as one JSON array, so that there is one plan for any number.
 *
 * `task` is what is admitted. Requests of one owner are admitted in their order while its cap allows; all tasks of a request have the
 * same `request` and so are counted together. For the count to hold, no one else may admit tasks of this owner meanwhile: see
 * `admissionLock`, which is taken by an earlier statement, because a statement sees nothing that was committed after it began.
 *
 * `newcomer` are owners who had nothing to draw. They are put level with the one who has had the least of those who have, for a rest
 * earns no credit; what is still being drawn counts as not yet charged, for its estimate may be far too high. Where nobody else
 * waits, they are put level with the first of them, as if they had come one after the other.
 */
const insertStatement = (addsJobs: boolean): string => `
WITH RECURSIVE given AS MATERIALIZED (
  SELECT * FROM ROWS FROM (json_to_recordset($1) AS (
    request integer, "maxQueued" integer, ${given.join(', ')},
    "hasRecord" boolean, webhook varchar, "promptAsSent" text, metadata json, job jsonb
  )) WITH ORDINALITY
),
revoked AS MATERIALIZED (
  SELECT id FROM api_keys WHERE id IN (SELECT DISTINCT "ownerId" FROM given) AND revoked_at IS NOT NULL
),
room AS MATERIALIZED (
  SELECT "ownerId", queued, "maxQueued" - queued AS places
  FROM (SELECT DISTINCT "ownerId", "maxQueued" FROM given WHERE "maxQueued" > 0) capped
  CROSS JOIN LATERAL (
    SELECT count(*)::integer AS queued
    FROM (SELECT FROM image_tasks WHERE owner_id = "ownerId" AND status = 'queued' LIMIT "maxQueued") counted
  ) now
),
task AS MATERIALIZED (
  SELECT numbered.* FROM (
    SELECT *, count(*) OVER (PARTITION BY "ownerId" ORDER BY request) AS place FROM given
  ) numbered
  LEFT JOIN room USING ("ownerId")
  WHERE place <= coalesce(places, place) AND "ownerId" NOT IN (SELECT id FROM revoked)
  ORDER BY ordinality
),
${waiting},
drawing AS (
  SELECT owner_id, sum(charged_seconds) AS charged FROM image_tasks
  WHERE status = 'processing' AND NOT sandbox GROUP BY owner_id
),
newcomer AS MATERIALIZED (
  SELECT "ownerId" AS owner_id, first FROM (
    SELECT "ownerId", min(ordinality) AS first FROM task WHERE NOT sandbox GROUP BY "ownerId"
  ) owners
  WHERE NOT ${hasTask('queued')} AND NOT ${hasTask('processing')}
),
joined AS (
  INSERT INTO fair_shares (owner_id, virtual_time)
  SELECT owner_id, coalesce(
    (SELECT min(share.virtual_time - coalesce(drawing.charged, 0))
     FROM (SELECT owner_id FROM waiting UNION SELECT owner_id FROM drawing) present
     JOIN fair_shares share USING (owner_id) LEFT JOIN drawing USING (owner_id)),
    (SELECT virtual_time FROM newcomer JOIN fair_shares USING (owner_id) ORDER BY first LIMIT 1),
    0
  )
  FROM newcomer ORDER BY owner_id
  ON CONFLICT (owner_id) DO UPDATE SET virtual_time = greatest(fair_shares.virtual_time, excluded.virtual_time)
),
new_tasks AS (
  INSERT INTO image_tasks (${filled.join(', ')}, status)
  SELECT ${taken.join(', ')}, 'queued' FROM task ORDER BY ordinality
),
new_generations AS (
  INSERT INTO generations (id, owner_id, webhook, metadata)
  SELECT id, "ownerId", webhook, metadata FROM task WHERE kind = 'generation' AND "hasRecord" ORDER BY ordinality
),
new_prompts AS (
  INSERT INTO finetune_prompts (id, owner_id, finetune_id, prompt, metadata)
  SELECT id, "ownerId", "finetuneId", "promptAsSent", metadata FROM task
  WHERE kind = 'prompt' AND "hasRecord" ORDER BY ordinality
)${
  addsJobs
    ? `,
new_jobs AS (${insertJobs('task')})`
    : ''
}
SELECT given.request, task.request IS NOT NULL AS admitted, coalesce(room.queued, 0) AS queued,
  given."ownerId" IN (SELECT id FROM revoked) AS revoked${addsJobs ? `, (${tellWorkers('task')}) AS told` : ''}
FROM (SELECT DISTINCT request, "ownerId" FROM given) given
LEFT JOIN (SELECT DISTINCT request FROM task) task USING (request)
LEFT JOIN room USING ("ownerId")`;

const withJobs = { name: 'insert-tasks-and-jobs', text: insertStatement(true) };
const withoutJobs = { name: 'insert-tasks', text: insertStatement(false) };

/**
 * What is run before `insertTasks` in the same transaction for owners with a cap, so that the caps hold however many processes admit at
 * once. Always in one order, so that no two transactions wait for each other.
 * @returns undefined where nobody has a cap.
 */
export function admissionLock(works: readonly NewTasks[]): string | undefined {
  const owners = new Set(works.filter(({ maxQueued }) => maxQueued > 0).map(({ ownerId }) => ownerId));
  if (owners.size === 0) return undefined;
  const locks = [...owners].sort().map((ownerId) => {
    const name = `'admission ${ownerId.replaceAll("'", "''")}'`;
    return `pg_advisory_xact_lock(hashtextextended(${name}, 0))`;
  });
  // Columns and no rows to go through: there is nothing to plan.
  return `SELECT ${locks.join(', ')}`;
}

/**
 * Writes what requests make, after `admissionLock`.
 * @returns one outcome for each. With a back end that has no rows the jobs are the caller's to add after the commit: `jobOf`.
 */
export async function insertTasks(
  client: StatementClient,
  jobs: JobBackEnd,
  works: readonly NewTasks[],
): Promise<InsertOutcome[]> {
  const answer = await client.query({ ...statementFor(jobs), values: [rowsOf(jobs, works)] });
  return outcomesOf(answer.rows);
}

/** The server's log shows a statement that failed, and with it the prompts in its text: it is told not to where the role may say so. */
const withoutFailedStatements = `
DO $$ BEGIN
  PERFORM set_config('log_min_error_statement', 'panic', false);
EXCEPTION WHEN insufficient_privilege THEN NULL;
END $$`;

/** What `insertTogether` needs to have been run once on a connection. */
export function prepareInsert(jobs: JobBackEnd): string {
  const { name, text } = statementFor(jobs);
  return `${withoutFailedStatements}; PREPARE "${name}" (json) AS ${text}`;
}

/**
 * Locks and writes in a transaction of its own that is one message and one answer: where several statements come as one text, the
 * server makes them one transaction, each with a view of its own of what is committed, and rolls back at the first error.
 * @param client on which `prepareInsert` has been run.
 */
export async function insertTogether(
  client: ClientBase,
  jobs: JobBackEnd,
  works: readonly NewTasks[],
): Promise<InsertOutcome[]> {
  const insert = `EXECUTE "${statementFor(jobs).name}" (${escapeLiteral(rowsOf(jobs, works))})`;
  const lock = admissionLock(works);
  const answers = [await client.query<OutcomeRow>(lock ? `${lock}; ${insert}` : insert)].flat();
  return outcomesOf(answers[answers.length - 1].rows);
}

type OutcomeRow = InsertOutcome & { request: number };

function outcomesOf(rows: readonly unknown[]): InsertOutcome[] {
  const sorted = [...(rows as OutcomeRow[])].sort((a, b) => a.request - b.request);
  return sorted.map(({ admitted, revoked, queued }) => ({ admitted, revoked, queued }));
}

const statementFor = (jobs: JobBackEnd) => (jobs.rowOf ? withJobs : withoutJobs);

/** The statement's parameter. */
function rowsOf(jobs: JobBackEnd, works: readonly NewTasks[]): string {
  const rows = works.flatMap(({ maxQueued, tasks }, request) =>
    tasks.map(({ generation, finetunePrompt, delayMs, ...task }) => ({
      ...task,
      request,
      maxQueued,
      hasRecord: generation !== undefined || finetunePrompt !== undefined,
      webhook: generation?.webhook,
      promptAsSent: finetunePrompt?.prompt,
      metadata: (generation ?? finetunePrompt)?.metadata,
      job: jobs.rowOf?.(...jobOf({ ...task, delayMs })),
    })),
  );
  return JSON.stringify(rows);
}

/** The queue that a new task's job goes to, and the job. */
export function jobOf({ id, sandbox, delayMs }: Pick<NewTask, 'id' | 'sandbox' | 'delayMs'>) {
  const job = { id: jobIdOf(id, 1), data: { taskId: id }, ...(delayMs && { delayMs }) };
  return [sandbox ? 'sandbox' : 'images', job] as const;
}
