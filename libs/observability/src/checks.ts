import { setTimeout as delay } from 'node:timers/promises';
import type { Metrics } from './metrics';

/** Health checks by name: a check fails if it rejects, returns false or takes too long. */
export type HealthChecks = Readonly<Record<string, () => Promise<unknown>>>;

const timeoutMs = 3_000;

/**
 * Without the queue all still works, a second later: workers look for tasks by themselves. Without credentials tasks
 * wait, or pictures get none, and nothing is gained by a process that is not ready.
 */
const spared: readonly string[] = ['queue', 'credentials'];

export interface Readiness {
  /** `degraded`: ready, but a check that it can do without has failed. */
  status: 'ok' | 'degraded' | 'unavailable';
  checks: Record<string, boolean>;
  /** Failed checks without which it is not ready. */
  missing: string[];
}

/** Runs all checks in parallel. */
export async function readinessOf(checks: HealthChecks): Promise<Readiness> {
  const names = Object.keys(checks);
  const results = await Promise.all(names.map((name) => passes(checks[name])));
  const failed = names.filter((_, i) => !results[i]);
  const missing = failed.filter((name) => !spared.includes(name));
  return {
    status: missing.length > 0 ? 'unavailable' : failed.length > 0 ? 'degraded' : 'ok',
    checks: Object.fromEntries(names.map((name, i) => [name, results[i]])),
    missing,
  };
}

/**
 * Shows Prometheus what `/health/ready` finds.
 * @param freeBytes of the fullest disk of the data folder; undefined if none can be read
 */
export function measureHealth(
  metrics: Metrics,
  checks: HealthChecks,
  freeBytes: () => Promise<number | undefined>,
): void {
  const help = 'Whether a check of /health/ready passes: 1 or 0.';
  metrics.gauge('ready', { help, labels: ['check'] }, async (gauge) => {
    const { checks: results } = await readinessOf(checks);
    for (const [check, isPassed] of Object.entries(results)) gauge.set({ check }, Number(isPassed));
  });
  const diskHelp = 'Room on the disk of the data folder; of two disks, on the fuller one.';
  metrics.gauge('disk_free_bytes', { help: diskHelp }, async (gauge) => {
    const free = await freeBytes();
    if (free !== undefined) gauge.set(free);
  });
}

async function passes(check: () => Promise<unknown>): Promise<boolean> {
  const deadline = new AbortController();
  const late = delay(timeoutMs, false, { signal: deadline.signal }).catch(() => false);
  const result = await Promise.race([check().catch(() => false), late]);
  deadline.abort();
  return result !== false;
}

/** Caches the result of `ask`, good or bad, for `forMs`. */
export function cached<T>(ask: () => Promise<T>, forMs: number): () => Promise<T> {
  let asked: { at: number; answer: Promise<T> } | undefined;
  return () => {
    const now = performance.now();
    if (!asked || now - asked.at >= forMs) asked = { at: now, answer: ask() };
    return asked.answer;
  };
}
