import { setTimeout as delay } from 'node:timers/promises';
import { compareFiles } from './compare-files';
import type { Entry } from './ledger';
import type { Figures, Outcome } from './row';
import type { GenerationBody } from './caller';
import type { Site } from './site';

/** A webhook that was on its way when its record was deleted may still arrive. */
const flightMs = 5_000;
/** So many problems of one kind are named. */
const maxNamed = 3;

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
  /** Whether pictures may fail with an error that explains why. */
  mayFail?: RegExp;
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

/** Compares what was acknowledged with the results, from the outside: rows, files, webhooks. */
export async function audit(site: Site, options: AuditOptions = {}): Promise<Outcome> {
  const { ledger } = site;
  const rows = await site.query<TaskRow>(
    `SELECT task.id, kind, status, attempt, error, num_images,
            (SELECT count(*) FROM images WHERE task_id = task.id)::int AS images,
            EXISTS (SELECT FROM generations WHERE id = task.id) AS has_generation
     FROM tasks task JOIN drawings ON drawings.id = task.id`,
  );
  const books: Books = {
    site,
    options,
    entries: [...ledger.entries.values()],
    rows: new Map(rows.map((row) => [row.id, row])),
    findings: new Findings([...(options.problems ?? [])]),
    figures: {
      acknowledged: ledger.entries.size,
      terminated: 0,
      duplicates: 0,
      lost: 0,
      leaked: 0,
      serverErrors: ledger.serverErrors({ mayBeUnavailable: options.mayBeUnavailable ?? false }),
    },
  };
  const { figures, findings } = books;
  findings.add(figures.serverErrors, 'answers of 5xx that nothing excuses', [ledger.summary(), ...ledger.errors]);
  auditEndings(books);
  auditRecords(books);
  await auditUsage(books);
  auditWebhooks(books);
  const { orphans, leaked, missing } = await compareFiles(site);
  figures.leaked += findings.add(leaked.length, 'files without a row after the sweep', leaked);
  figures.leaked += findings.add(missing.length, 'pictures without their file', missing);
  return {
    figures,
    problems: findings.problems,
    notes: { answers: ledger.summary(), 'left to the sweeper': orphans, ...options.notes },
    ...(options.skipped && { skipped: options.skipped }),
  };
}

/** What was promised, what there is, and what has been found to be wrong so far. */
interface Books {
  site: Site;
  options: AuditOptions;
  /** Of the ledger. */
  entries: readonly Entry[];
  /** By id. */
  rows: ReadonlyMap<string, TaskRow>;
  findings: Findings;
  figures: Figures;
}

/** What is wrong, in sentences. */
class Findings {
  constructor(readonly problems: string[]) {}

  /** @returns how many. */
  add(count: number, what: string, examples: readonly string[] = []): number {
    const named = examples.length > 0 ? ` (${examples.slice(0, maxNamed).join('; ')})` : '';
    if (count > 0) this.problems.push(`${count} ${what}${named}`);
    return count;
  }

  /** Each of some records. @returns how many. */
  addAll(list: readonly { id: string }[], what: string): number {
    return this.add(
      list.length,
      what,
      list.map(({ id }) => id),
    );
  }
}

const isKept = ({ ending }: Entry): boolean => ending?.kind !== 'deleted';

/** Every promise has an end. */
function auditEndings({ entries, rows, figures, findings }: Books): void {
  const isTerminated = (entry: Entry): boolean =>
    !isKept(entry) || ['succeeded', 'failed', 'canceled'].includes(rows.get(entry.id)?.status ?? '');
  figures.terminated = entries.filter(isTerminated).length;
  figures.lost += findings.addAll(
    entries.filter((entry) => isKept(entry) && !rows.has(entry.id)),
    'acknowledged records without a row',
  );
  figures.lost += findings.addAll(
    entries.filter((entry) => rows.has(entry.id) && !isTerminated(entry)),
    'acknowledged records that did not terminate',
  );
}

/** Each record's end is the right one, and what is promised by it is there. */
function auditRecords({ entries, rows, options, findings }: Books): void {
  const all = [...rows.values()];
  const failed = all.filter(({ status, error }) => status === 'failed' && !options.mayFail?.test(error ?? ''));
  findings.add(
    failed.length,
    'records failed',
    failed.map(({ id, error }) => `${id}: ${error}`),
  );
  findings.addAll(
    entries.filter(({ id, ending }) => ending?.kind === 'canceled' && rows.get(id)?.status !== 'canceled'),
    'canceled records with another status',
  );
  findings.addAll(
    entries.filter((entry) => !isKept(entry) && rows.has(entry.id)),
    'deleted records that are still there',
  );
  findings.addAll(
    all.filter(({ status }) => status === 'queued' || status === 'processing'),
    'rows left open',
  );
  findings.addAll(
    all.filter(({ kind, has_generation }) => kind === 'generation' && !has_generation),
    'half-made records',
  );
  findings.addAll(
    all.filter(({ status, images, num_images }) => images !== (status === 'succeeded' ? num_images : 0)),
    'records with too many or too few pictures',
  );
}

/** What is counted was counted once; pictures of sandbox keys are not. */
async function auditUsage({ site, entries, figures, findings }: Books): Promise<void> {
  if (!entries.every(isKept)) return;
  const [{ used, made }] = await site.query<{ used: number; made: number }>(
    `SELECT (SELECT coalesce(sum(images), 0) FROM daily_usage)::int AS used, (SELECT count(*) FROM images JOIN tasks task ON task.id = task_id WHERE NOT sandbox)::int AS made`,
  );
  figures.duplicates += findings.add(Math.abs(used - made), `pictures counted wrongly (${made} made, ${used} counted)`);
}

/** Webhooks: one delivery a record, and each arrived. */
function auditWebhooks({ site, entries, rows, options, figures, findings }: Books): void {
  const receipts = site.receiver.received.map(({ headers, body }, index) => ({
    record: JSON.parse(body) as GenerationBody,
    webhookId: String(headers['webhook-id']),
    at: site.receivedAt[index],
  }));
  const idsOf = new Map<string, string[]>();
  for (const { record, webhookId } of receipts) idsOf.set(record.id, [...(idsOf.get(record.id) ?? []), webhookId]);
  const repeated = [...idsOf].filter(([, ids]) => (options.mayRepeatWebhooks ? new Set(ids).size : ids.length) > 1);
  figures.duplicates += findings.addAll(
    repeated.map(([id]) => ({ id })),
    'records with more than one webhook',
  );
  figures.lost += findings.addAll(
    entries.filter((entry) => isKept(entry) && entry.hasWebhook && !idsOf.has(entry.id)),
    'webhooks that never came',
  );
  const records = receipts.map(({ record }) => record);
  findings.addAll(
    records.filter(({ id, status }) => rows.has(id) && rows.get(id)?.status !== status),
    'webhooks with another status than the record',
  );
  const isLate = ({ record, at }: (typeof receipts)[number]): boolean => {
    const ending = site.ledger.entries.get(record.id)?.ending;
    return ending !== undefined && record.status !== 'canceled' && at > ending.at + flightMs;
  };
  findings.addAll(
    receipts.filter(isLate).map(({ record }) => record),
    'webhooks of a picture after its record was canceled or deleted',
  );
}
