import 'reflect-metadata';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '@app/config';
import { createDataSource } from '@app/database';
import { JsonLogger } from '@app/observability';
import { openImageStorage } from '@app/storage';
import { FileSweeper } from '../../apps/inference/src/sweeper/file-sweeper';
import type { Entry, GenerationBody } from './caller';
import type { Figures, Outcome } from './row';
import type { Site } from './site';

/** A webhook that was on its way when its record was deleted may still arrive. */
const flightMs = 5_000;
/** So many problems of one kind are named. */
const maxNamed = 3;
/** Long enough for every file to be old. */
const sweepAheadMs = 3_600_000;
/** `<task id>/…`; thumbnails and weights lie beside them. */
const pictureKey = /^[\w-]{24}\//;

interface TaskRow {
  id: string;
  kind: string;
  status: string;
  attempt: number;
  error: string | null;
  num_images: number;
  images: number;
  has_generation: boolean;
}

export interface AuditOptions {
  /** Whether the fault made the service answer 503 with Retry-After. */
  mayBeUnavailable?: boolean;
  /** Whether a webhook may come more than once, always with the same id. */
  mayRepeatWebhooks?: boolean;
  /** Other findings of the scenario. */
  problems?: string[];
  notes?: Outcome['notes'];
  skipped?: string;
}

/**
 * Waits until nothing is queued, drawn or to be delivered, as long as anything changes.
 * @returns the problem if nothing has changed for a while
 */
export async function comeToRest(site: Site, patienceMs = 180_000): Promise<string[]> {
  let before = '';
  for (let movedAt = Date.now(); Date.now() - movedAt < patienceMs; await delay(100)) {
    const rows = await site
      .query<{ open: number; state: string }>(
        `SELECT tasks.open + deliveries.open AS open, tasks.state || deliveries.state AS state FROM
         (SELECT count(*) FILTER (WHERE status IN ('queued', 'processing'))::int AS open,
            concat(count(*) FILTER (WHERE status = 'queued'), ' queued, ',
                   count(*) FILTER (WHERE status = 'processing'), ' drawn, ', sum(attempt), ' attempts, ') AS state
          FROM tasks) tasks,
         (SELECT count(*) FILTER (WHERE status = 'pending')::int AS open,
            concat(count(*) FILTER (WHERE status = 'pending'), ' to be delivered, ', sum(attempts), ' tries') AS state
          FROM webhook_deliveries) deliveries`,
      )
      // Its database may be unavailable at the moment.
      .catch(() => []);
    if (rows[0]?.open === 0) return [];
    if (rows[0] && rows[0].state !== before) [before, movedAt] = [rows[0].state, Date.now()];
  }
  return [`nothing has moved for ${patienceMs / 1_000} s: ${before}`];
}

/** Possible faults, the figure that each counts for, and the records or files of which it is true. */
type Finding = [what: string, figure: keyof Figures | undefined, examples: string[]];

/** Compares what was acknowledged with the results, from the outside: rows, files, webhooks. */
export async function audit(site: Site, options: AuditOptions = {}): Promise<Outcome> {
  const { ledger } = site;
  const rows = await site.query<TaskRow>(
    `SELECT task.id, kind, status, attempt, error, num_images,
            (SELECT count(*) FROM images WHERE task_id = task.id)::int AS images,
            EXISTS (SELECT FROM generations WHERE id = task.id) AS has_generation
     FROM tasks task JOIN drawings ON drawings.id = task.id`,
  );
  const [{ used, made }] = await site.query<{ used: number; made: number }>(
    `SELECT (SELECT coalesce(sum(images), 0) FROM daily_usage)::int AS used, (SELECT count(*) FROM images JOIN tasks task ON task.id = task_id WHERE NOT sandbox)::int AS made`,
  );
  const tasks = new Map(rows.map((row) => [row.id, row]));
  const entries = [...ledger.entries.values()];
  const { orphans, leaked, missing } = await compareFiles(site);
  const figures: Figures = {
    acknowledged: entries.length,
    terminated: entries.filter((entry) => isTerminated(entry, tasks)).length,
    duplicates: 0,
    lost: 0,
    leaked: 0,
    serverErrors: ledger.serverErrors(options.mayBeUnavailable),
  };
  const problems = [...(options.problems ?? [])];
  if (figures.serverErrors > 0)
    problems.push(
      `${figures.serverErrors} answers of 5xx that nothing excuses (${ledger.summary()})`,
      ...ledger.errors,
    );
  // Of a deleted record the usage is kept, but no picture.
  if (entries.every(isKept) && used !== made) {
    problems.push(`pictures counted wrongly (${made} made, ${used} counted)`);
    figures.duplicates += Math.abs(used - made);
  }
  const findings: Finding[] = [
    ...recordFindings(entries, tasks),
    ...webhookFindings(site, tasks, options),
    ['files without a row after the sweep', 'leaked', leaked],
    ['pictures without their file', 'leaked', missing],
  ];
  for (const [what, figure, examples] of findings.filter((each) => each[2].length > 0)) {
    problems.push(`${examples.length} ${what} (${examples.slice(0, maxNamed).join('; ')})`);
    if (figure) figures[figure] += examples.length;
  }
  const notes = { answers: ledger.summary(), 'left to the sweeper': orphans, ...options.notes };
  return { figures, problems, notes, ...(options.skipped && { skipped: options.skipped }) };
}

type Tasks = ReadonlyMap<string, TaskRow>;

const idsOf = (list: readonly { id: string }[]): string[] => list.map(({ id }) => id);
const isKept = ({ ending }: Entry): boolean => ending?.kind !== 'deleted';
const isTerminated = (entry: Entry, tasks: Tasks): boolean =>
  !isKept(entry) || ['succeeded', 'failed', 'canceled'].includes(tasks.get(entry.id)?.status ?? '');

/** Every promise has an end, each record's end is the right one, and what is promised by it is there. */
function recordFindings(entries: readonly Entry[], tasks: Tasks): Finding[] {
  const rows = [...tasks.values()];
  const entriesThat = (isWrong: (entry: Entry, row?: TaskRow) => boolean): string[] =>
    idsOf(entries.filter((entry) => isWrong(entry, tasks.get(entry.id))));
  const rowsThat = (isWrong: (row: TaskRow) => boolean): string[] => idsOf(rows.filter(isWrong));
  const failed = rows.filter(({ status }) => status === 'failed');
  return [
    ['acknowledged records without a row', 'lost', entriesThat((entry, row) => isKept(entry) && !row)],
    [
      'acknowledged records that did not terminate',
      'lost',
      entriesThat((one, row) => !!row && !isTerminated(one, tasks)),
    ],
    ['records failed', undefined, failed.map(({ id, error }) => `${id}: ${error}`)],
    [
      'canceled records with another status',
      undefined,
      entriesThat(({ ending }, row) => ending?.kind === 'canceled' && row?.status !== 'canceled'),
    ],
    ['deleted records that are still there', undefined, entriesThat((entry, row) => !isKept(entry) && !!row)],
    ['rows left open', undefined, rowsThat(({ status }) => status === 'queued' || status === 'processing')],
    ['half-made records', undefined, rowsThat((row) => row.kind === 'generation' && !row.has_generation)],
    [
      'records with too many or too few pictures',
      undefined,
      rowsThat(({ status, images, num_images }) => images !== (status === 'succeeded' ? num_images : 0)),
    ],
  ];
}

/** One delivery a record, and each arrived. */
function webhookFindings({ ledger, receiver, receivedAt }: Site, tasks: Tasks, options: AuditOptions): Finding[] {
  const receipts = receiver.received.map(({ headers, body }, index) => ({
    ...(JSON.parse(body) as GenerationBody),
    webhookId: String(headers['webhook-id']),
    at: receivedAt[index],
  }));
  const webhooks = new Map<string, string[]>();
  for (const { id, webhookId } of receipts) webhooks.set(id, [...(webhooks.get(id) ?? []), webhookId]);
  const repeated = [...webhooks].filter(([, ids]) => (options.mayRepeatWebhooks ? new Set(ids).size : ids.length) > 1);
  const missing = [...ledger.entries.values()].filter(
    (entry) => isKept(entry) && entry.hasWebhook && !webhooks.has(entry.id),
  );
  const isLate = ({ id, status, at }: (typeof receipts)[number]): boolean => {
    const ending = ledger.entries.get(id)?.ending;
    return ending !== undefined && status !== 'canceled' && at > ending.at + flightMs;
  };
  // A Prompt's has no status.
  const differing = receipts.filter(
    ({ id, status }) => status !== undefined && tasks.has(id) && tasks.get(id)?.status !== status,
  );
  return [
    ['records with more than one webhook', 'duplicates', repeated.map(([id]) => id)],
    ['webhooks that never came', 'lost', idsOf(missing)],
    ['webhooks with another status than the record', undefined, idsOf(differing)],
    ['webhooks of a picture after its record was canceled or deleted', undefined, idsOf(receipts.filter(isLate))],
  ];
}

/** Lists the files, lets the sweeper remove what it would in time, and lists what is left. */
async function compareFiles(site: Site): Promise<{ orphans: number; leaked: string[]; missing: string[] }> {
  const storage = openImageStorage(loadConfig({ ...site.env, DATA_DIR: site.dataDir }));
  const list = async (): Promise<Map<string, number>> => {
    const keys = new Map<string, number>();
    for await (const { key, bytes } of storage.list()) if (pictureKey.test(key)) keys.set(key, bytes);
    return keys;
  };
  const rows = await site.query<{ storage_key: string; bytes: number }>(
    `SELECT storage_key, bytes FROM images
     UNION ALL SELECT regexp_replace(storage_key, '\\.\\w+$', '.thumbnail.webp'), thumbnail_bytes FROM images
     WHERE thumbnail_bytes IS NOT NULL`,
  );
  const known = new Set(rows.map(({ storage_key }) => storage_key));
  const unknown = (files: ReadonlyMap<string, number>): string[] => [...files.keys()].filter((key) => !known.has(key));
  const orphans = unknown(await list()).length;
  const dataSource = await createDataSource(site.databaseUrl, { poolSize: 1 }).initialize();
  try {
    await new FileSweeper(storage, dataSource, new JsonLogger('torture', 'silent')).sweep(Date.now() + sweepAheadMs);
  } finally {
    await dataSource.destroy();
  }
  const files = await list();
  const missing = rows.filter(({ storage_key, bytes }) => files.get(storage_key) !== bytes);
  return { orphans, leaked: unknown(files), missing: missing.map(({ storage_key }) => storage_key) };
}
