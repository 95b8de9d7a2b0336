import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../support/free-port';
import { audit, comeToRest } from '../audit';
import type { Row } from '../row';
import type { Site } from '../site';

/**
 * The api dies while it handles requests: right after an insert, and at random; callers with an Idempotency-Key repeat
 * their request.
 */
export const apiKill: Row = {
  name: 'api-kill',
  title: 'api kill -9 between insert and reply',
  sharedSite: 'sound workers',
  async run(site, size) {
    const rounds = size === 'long' ? 50 : 2;
    const port = await freePort();
    const [worker] = await site.anyWorkers(1);
    const problems: string[] = [];
    /** Whether each request was acknowledged, by its Idempotency-Key. */
    const keyed = new Map<string, boolean>();
    const caller = await site.newCaller({ url: `http://127.0.0.1:${port}` });
    const ask = async (key?: string): Promise<void> => {
      const fields = { webhook: site.receiver.url, metadata: { nonce: key ?? randomUUID() } };
      if (key) keyed.set(key, keyed.get(key) ?? false);
      const { id } = await caller.create(fields, key ? { 'idempotency-key': key } : {});
      if (key && id) keyed.set(key, true);
    };

    for (let round = 0; round < rounds; round++) {
      const isAimed = round % 2 === 0;
      const env: Record<string, string> = isAimed ? { DARKROOM_CRASH_AT: `after-insert:${1 + (round % 3)}` } : {};
      const api = await site.startApi({ port, env });
      const storm = Array.from({ length: 4 }, async (_, i) => {
        while (api.process.isRunning) await ask(i % 2 ? randomUUID() : undefined);
      });
      if (!isAimed) {
        await delay(50 + Math.random() * 200);
        api.process.signal('SIGKILL');
      }
      await api.process.ended;
      await Promise.all(storm);
    }

    const api = await site.startApi({ port });
    const unanswered = [...keyed].filter(([, isAcknowledged]) => !isAcknowledged).map(([key]) => key);
    for (const key of unanswered) await ask(key);
    problems.push(...(await comeToRest(site)));
    const counts = await madeOf(site);
    const wrong = [...keyed.keys()].filter((key) => counts.get(key) !== 1);
    if (wrong.length > 0) problems.push(`${wrong.length} Idempotency-Keys without exactly one record`);
    if (site.isLastRow) await Promise.all([worker.end('SIGTERM'), api.process.end('SIGTERM')]);
    const rowCount = [...counts.values()].reduce((sum, count) => sum + count, 0);
    return audit(site, {
      problems,
      // One may have been in transit when the api was killed.
      mayRepeatWebhooks: true,
      notes: {
        kills: rounds,
        'asked again with their key': unanswered.length,
        'made, but not acknowledged': rowCount - site.ledger.entries.size,
      },
    });
  },
};

/** How many records were made with each nonce. */
async function madeOf(site: Site): Promise<Map<string, number>> {
  const rows = await site.query<{ nonce: string; count: number }>(
    `SELECT metadata->>'nonce' AS nonce, count(*)::int AS count FROM generations GROUP BY 1`,
  );
  return new Map(rows.map(({ nonce, count }) => [nonce, count]));
}
