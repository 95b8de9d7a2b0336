import 'reflect-metadata';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '@app/config';
import { createDataSource } from '@app/database';
import { JsonLogger } from '@app/observability';
import { openImageStorage } from '@app/storage';
import { FileSweeper } from '../../apps/inference/src/sweeper/file-sweeper';
import type { Entry } from './ledger';
import type { Figures, Outcome } from './row';
import type { GenerationBody } from './caller';
import type { Site } from './site';

/** Long enough for every file to be old. */
const sweepAheadMs = 3_600_000;
/** A webhook that was on its way when its record was deleted may still arrive. */
const flightMs = 5_000;
/** `<task id>/…`; thumbnails and weights lie beside them. */
const pictureKey = /^[\w-]{24}\//;
/** So many problems of one kind are named. */
const named = 3;

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
  /** Whether the service was made to answer 503 with Retry-After. */
  mayBeUnavailable?: boolean;
  /** Whether a webhook may come more than once, with one and the same id. */
  mayRepeatWebhooks?: boolean;
  /** Whether pictures may fail with an error that says why. */
  mayFail?: RegExp;
  /** What else the row found. */
  problems?: string[];
  notes?: Outcome['notes'];
  skipped?: string;
}

/**
 * Waits until nothing is queued, drawn or to be delivered, for as long as anything moves.
 * @returns what is the matter when nothing has moved for a while
 */
export async function comeToRest(site: Site, patienceMs = 180_000): Promise<string[]> {
  let before = '';
  for (let movedAt = Date.now(); Date.now() - movedAt < patienceMs; await delay(50)) {
    const rows = await site
      .query<{ open: number; state: string }>(
        `SELECT tasks.open + deliveries.open AS open, tasks.state || deliveries.state AS state FROM
         (SELECT count(*) FILTER (WHERE status IN ('queued', 'processing'))::int AS open,
            concat(count(*) FILTER (WHERE status = 'queued'), ' queued, ',
                   count(*) FILTER (WHERE status = 'processing'), ' drawn, ', sum(attempt), ' attempts, ') AS state
          FROM image_tasks) tasks,
         (SELECT count(*) FILTER (WHERE status = 'pending')::int AS open,
            concat(count(*) FILTER (WHERE status = 'pending'), ' to be delivered, ', sum(attempts), ' tries') AS state
          FROM webhook_deliveries) deliveries`,
      )
      // Its database may be away just now.
      .catch(() => []);
    if (rows[0]?.open === 0) return [];
    if (rows[0] && rows[0].state !== before) [before, movedAt] = [rows[0].state, Date.now()];
  }
  return [`nothing has moved for ${patienceMs / 1_000} s: ${before}`];
}

/** Compares what was acknowledged with what came, from the outside: rows, files, webhooks. */
export async function audit(site: Site, options: AuditOptions = {}): Promise<Outcome> {
  const problems = [...(options.problems ?? [])];
  const { ledger } = site;
  const rows = await site.query<TaskRow>(
    `SELECT task.id, kind, status, attempt, error, num_images,
            (SELECT count(*) FROM images WHERE task_id = task.id)::int AS images,
            EXISTS (SELECT FROM generations WHERE id = task.id) AS has_generation
     FROM image_tasks task`,
  );
  const byId = new Map(rows.map((row) => [row.id, row]));
  const complain = (count: number, what: string, examples: readonly string[] = []): number => {
    if (count > 0)
      problems.push(`${count} ${what}${examples.length ? ` (${examples.slice(0, named).join('; ')})` : ''}`);
    return count;
  };
  const all = (list: readonly { id: string }[], what: string): number =>
    complain(
      list.length,
      what,
      list.map(({ id }) => id),
    );

  const figures: Figures = {
    acknowledged: ledger.entries.size,
    terminated: 0,
    duplicates: 0,
    lost: 0,
    leaked: 0,
    serverErrors: ledger.serverErrors({ mayBeUnavailable: options.mayBeUnavailable ?? false }),
  };
  complain(figures.serverErrors, 'answers of 5xx that nothing excuses', [ledger.summary(), ...ledger.errors]);

  // 1. Every promise has an end.
  const entries = [...ledger.entries.values()];
  const isOver = ({ id, ending }: Entry): boolean =>
    ending?.kind === 'deleted' || ['succeeded', 'failed', 'canceled'].includes(byId.get(id)?.status ?? '');
  figures.terminated = entries.filter(isOver).length;
  const isKept = ({ ending }: Entry): boolean => ending?.kind !== 'deleted';
  figures.lost += all(
    entries.filter((entry) => isKept(entry) && !byId.has(entry.id)),
    'acknowledged records without a row',
  );
  figures.lost += all(
    entries.filter((entry) => byId.has(entry.id) && !isOver(entry)),
    'acknowledged records that did not terminate',
  );

  // 2. It is the right one, and what is promised by it is there.
  const isFailed = ({ status, error }: TaskRow): boolean => status === 'failed' && !options.mayFail?.test(error ?? '');
  complain(
    rows.filter(isFailed).length,
    'records failed',
    rows.filter(isFailed).map(({ id, error }) => `${id}: ${error}`),
  );
  all(
    entries.filter(({ id, ending }) => ending?.kind === 'canceled' && byId.get(id)?.status !== 'canceled'),
    'canceled records with another status',
  );
  all(
    entries.filter(({ id, ending }) => ending?.kind === 'deleted' && byId.has(id)),
    'deleted records that are still there',
  );
  all(
    rows.filter(({ status }) => status === 'queued' || status === 'processing'),
    'rows left open',
  );
  all(
    rows.filter(({ kind, has_generation }) => kind === 'generation' && !has_generation),
    'half-made records',
  );
  const pictures = (status: string): number | undefined => (status === 'succeeded' ? undefined : 0);
  all(
    rows.filter(({ status, images, num_images }) => images !== (pictures(status) ?? num_images)),
    'records with too many or too few pictures',
  );

  // 3. What is counted was counted once; pictures of sandbox keys are not.
  if (entries.every(isKept)) {
    const [{ used, made }] = await site.query<{ used: number; made: number }>(
      `SELECT (SELECT coalesce(sum(images), 0) FROM daily_usage)::int AS used, (SELECT count(*) FROM images JOIN image_tasks task ON task.id = task_id WHERE NOT sandbox)::int AS made`,
    );
    figures.duplicates += complain(Math.abs(used - made), `pictures counted wrongly (${made} made, ${used} counted)`);
  }

  // 4. Webhooks: one delivery a record, and each arrived.
  const receipts = site.receiver.received.map(({ headers, body }, index) => ({
    record: JSON.parse(body) as GenerationBody,
    webhookId: String(headers['webhook-id']),
    at: site.receivedAt[index],
  }));
  const idsOf = new Map<string, string[]>();
  for (const { record, webhookId } of receipts) idsOf.set(record.id, [...(idsOf.get(record.id) ?? []), webhookId]);
  const repeated = [...idsOf].filter(([, ids]) => (options.mayRepeatWebhooks ? new Set(ids).size : ids.length) > 1);
  figures.duplicates += all(
    repeated.map(([id]) => ({ id })),
    'records with more than one webhook',
  );
  figures.lost += all(
    entries.filter((entry) => isKept(entry) && entry.hasWebhook && !idsOf.has(entry.id)),
    'webhooks that never came',
  );
  all(
    receipts
      .filter(({ record }) => byId.has(record.id) && byId.get(record.id)?.status !== record.status)
      .map(({ record }) => record),
    'webhooks with another status than the record',
  );
  all(
    receipts
      .filter(({ record, at }) => {
        const ending = ledger.entries.get(record.id)?.ending;
        return ending && record.status !== 'canceled' && at > ending.at + flightMs;
      })
      .map(({ record }) => record),
    'webhooks of a picture after its record was canceled or deleted',
  );

  // 5. Files and rows are each other's.
  const { orphans, leaked, missing } = await compareFiles(site);
  figures.leaked += complain(leaked.length, 'files without a row after the sweep', leaked);
  figures.leaked += complain(missing.length, 'pictures without their file', missing);
  return {
    figures,
    problems,
    notes: { answers: ledger.summary(), 'left to the sweeper': orphans, ...options.notes },
    ...(options.skipped && { skipped: options.skipped }),
  };
}

/** Lists the files, lets the sweeper remove what it would in time, and lists what is left. */
async function compareFiles(site: Site): Promise<{ orphans: number; leaked: string[]; missing: string[] }> {
  const storage = openImageStorage(loadConfig({ ...site.env, DATA_DIR: site.dataDir }));
  const list = async (): Promise<Map<string, number>> => {
    const keys = new Map<string, number>();
    for await (const { key, bytes } of storage.list()) if (pictureKey.test(key)) keys.set(key, bytes);
    return keys;
  };
  const rows = await site.query<{ storage_key: string; bytes: number }>('SELECT storage_key, bytes FROM images');
  const known = new Set(rows.map(({ storage_key }) => storage_key));
  const orphans = [...(await list()).keys()].filter((key) => !known.has(key)).length;
  const dataSource = await createDataSource(site.databaseUrl, { poolSize: 1 }).initialize();
  try {
    await new FileSweeper(storage, dataSource, new JsonLogger('torture', 'silent')).sweep(Date.now() + sweepAheadMs);
  } finally {
    await dataSource.destroy();
  }
  const files = await list();
  return {
    orphans,
    leaked: [...files.keys()].filter((key) => !known.has(key)),
    missing: rows.filter(({ storage_key, bytes }) => files.get(storage_key) !== bytes).map((row) => row.storage_key),
  };
}
