import { performance } from 'node:perf_hooks';
import type { Bench } from './bench';
import type { Figures, Outcome, Row, Size } from './row';

/** One row of the report. */
export interface Report extends Outcome {
  name: string;
  title: string;
  seconds: number;
  /** What the processes said last, of a row that did not pass. */
  log?: string;
}

const nothing: Figures = { acknowledged: 0, terminated: 0, duplicates: 0, lost: 0, leaked: 0, serverErrors: 0 };

/** Runs one row at a place of its own; a row that breaks off is a problem of the row. */
export async function runRow(bench: Bench, row: Row, size: Size): Promise<Report> {
  const startedAt = performance.now();
  const site = await bench.site(row.name);
  let outcome: Outcome;
  try {
    outcome = await row.run(site, size);
  } catch (error) {
    outcome = { figures: nothing, problems: [(error as Error).stack ?? String(error)], notes: {} };
  } finally {
    await site.close();
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  const log = outcome.problems.length > 0 ? { log: site.lastWords() } : {};
  return { name: row.name, title: row.title, ...outcome, seconds, ...log };
}

/** Runs rows in their order, some at once; each promise is kept when its row is over. */
export function startRows(bench: Bench, rows: readonly Row[], size: Size, atOnce: number): Promise<Report>[] {
  const running = new Set<Promise<Report>>();
  let turn: Promise<unknown> = Promise.resolve();
  return rows.map((row) => {
    // In a box, for the turn is over when the row has started, not when it has ended.
    const started = turn.then(async () => {
      while (running.size >= atOnce) await Promise.race(running);
      const report = runRow(bench, row, size);
      running.add(report);
      void report.finally(() => running.delete(report));
      return [report];
    });
    turn = started;
    return started.then(([report]) => report);
  });
}
