import { setTimeout as delay } from 'node:timers/promises';

/** Health checks by name: a check fails if it rejects, returns false or takes too long. */
export type HealthChecks = Readonly<Record<string, () => Promise<unknown>>>;

/** Time limit of a check. */
const timeoutMs = 3_000;

/** Runs all checks in parallel. @returns the result of each, by name. */
export async function runChecks(checks: HealthChecks): Promise<Record<string, boolean>> {
  const names = Object.keys(checks);
  const results = await Promise.all(names.map((name) => passes(checks[name])));
  return Object.fromEntries(names.map((name, i) => [name, results[i]]));
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
