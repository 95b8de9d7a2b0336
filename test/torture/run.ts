import { performance } from 'node:perf_hooks';
import type { Bench } from './bench';
import type { Figures, Outcome, Row, Size } from './row';
import type { Site } from './site';

/** One row of the report. */
export interface Report extends Outcome {
  name: string;
  title: string;
  seconds: number;
  /** What the processes said last, of a row that did not pass. */
  log?: string;
}

const nothing: Figures = { acknowledged: 0, terminated: 0, duplicates: 0, lost: 0, leaked: 0, serverErrors: 0 };

/** Runs one row; a row that breaks off is a problem of the row. */
async function runRow(site: Site, row: Row, size: Size): Promise<Report> {
  const startedAt = performance.now();
  let outcome: Outcome;
  try {
    outcome = await row.run(site, size);
  } catch (error) {
    outcome = { figures: nothing, problems: [(error as Error).stack ?? String(error)], notes: {} };
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  const log = outcome.problems.length > 0 ? { log: site.lastWords() } : {};
  return { name: row.name, title: row.title, ...outcome, seconds, ...log };
}

/** Runs rows one after another on one site; after a row with problems the next one gets a new site. */
async function runOnOneSite(
  bench: Bench,
  rows: readonly Row[],
  size: Size,
  onReport: (row: Row, report: Report) => void,
): Promise<void> {
  let site: Site | undefined;
  for (const row of rows) {
    const isLast = row === rows.at(-1);
    if (site) await site.clear();
    else site = await bench.site(row.name);
    site.isLastRow = isLast;
    const report = await runRow(site, row, size);
    if (isLast || report.problems.length > 0) {
      await site.close();
      site = undefined;
    } else await site.endRow();
    onReport(row, report);
  }
}

/** Runs rows, on some sites at once, and first those that share one; each promise is kept when its row is over. */
export function startRows(bench: Bench, rows: readonly Row[], size: Size, atOnce: number): Promise<Report>[] {
  const siteOf = (row: Row): string | undefined => (size === 'short' ? row.sharedSite : undefined);
  const names = new Set(rows.flatMap((row) => siteOf(row) ?? []));
  const waiting = [
    ...[...names].map((name) => rows.filter((row) => siteOf(row) === name)),
    ...rows.filter((row) => !siteOf(row)).map((row) => [row]),
  ];
  const promises = new Map<Row, { keep: (report: Report) => void; breakWith: (error: unknown) => void }>();
  const reports = rows.map(
    (row) => new Promise<Report>((keep, breakWith) => void promises.set(row, { keep, breakWith })),
  );
  const work = async (): Promise<void> => {
    for (let group = waiting.shift(); group; group = waiting.shift())
      try {
        await runOnOneSite(bench, group, size, (row, report) => promises.get(row)!.keep(report));
      } catch (error) {
        for (const row of group) promises.get(row)!.breakWith(error);
      }
  };
  for (let i = 0; i < atOnce; i++) void work();
  return reports;
}
