import { setTimeout as delay } from 'node:timers/promises';

/** What has to be well, by name: a check that rejects, says false or takes too long has failed. */
export type HealthChecks = Readonly<Record<string, () => Promise<unknown>>>;

/** What a check may take. */
const patienceMs = 3_000;

/** Makes all checks at once. @returns how each went, by name. */
export async function runChecks(checks: HealthChecks): Promise<Record<string, boolean>> {
  const names = Object.keys(checks);
  const results = await Promise.all(names.map((name) => passes(checks[name])));
  return Object.fromEntries(names.map((name, i) => [name, results[i]]));
}

async function passes(check: () => Promise<unknown>): Promise<boolean> {
  const deadline = new AbortController();
  const late = delay(patienceMs, false, { signal: deadline.signal }).catch(() => false);
  const result = await Promise.race([check().catch(() => false), late]);
  deadline.abort();
  return result !== false;
}
