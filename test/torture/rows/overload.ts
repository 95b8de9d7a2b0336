import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until';
import { audit, comeToRest } from '../audit';
import type { Caller } from '../caller';
import type { Row } from '../row';

/** The limit of waiting tasks per key; far more are requested. Those that wait at the end are drawn, too. */
const maxQueued = { long: 20, short: 5 };
/** How far the shares of two keys may differ, relative to their mean. */
const shareLimit = 0.2;
const pauseMs = 40;

/** Two keys request far more than can be drawn, one of them four times as much as the other. */
export const overload: Row = {
  name: 'overload',
  title: '5x overload, two keys',
  async run(site, size) {
    const lastsMs = size === 'long' ? 120_000 : 500;
    Object.assign(site.env, { MAX_QUEUED_PER_KEY: String(maxQueued[size]), RATE_LIMIT_PER_MINUTE: '600' });
    const api = await site.startApi();
    await site.startWorker();
    const [greedy, modest] = [await site.newCaller(api), await site.newCaller(api)];
    const problems: string[] = [];
    let isOver = false;
    const ask = async (caller: Caller): Promise<void> => {
      for (; !isOver; await delay(pauseMs)) {
        const { status, headers } = (await caller.create({ webhook: site.receiver.url })).answer;
        if (![201, 429, 503].includes(status)) problems.push(`answered ${status}`);
        if (status === 429 && !headers.get('retry-after')) problems.push('a 429 without Retry-After');
      }
    };
    const asking = [greedy, greedy, greedy, greedy, modest].map(ask);
    await delay(lastsMs);
    // A slow machine answers fewer requests, and its queue is full later.
    if (size === 'short')
      await until(async () => site.ledger.statuses.has(429), 'something is refused').catch(() => undefined);
    // Both have had waiting tasks all the time, except at the very beginning.
    const shares = await site.query<{ drawn: number }>(
      `SELECT count(*)::int AS drawn FROM tasks WHERE status = 'succeeded' GROUP BY owner_id`,
    );
    isOver = true;
    await Promise.all(asking);
    const [a = 0, b = 0] = shares.map(({ drawn }) => drawn);
    const apart = a + b > 0 ? (2 * Math.abs(a - b)) / (a + b) : 0;
    // In a short run there are too few pictures to compare shares.
    if (size === 'long' && apart > shareLimit) problems.push(`one key had ${a} pictures, the other ${b}`);
    problems.push(...(await comeToRest(site)));
    const refused = site.ledger.statuses.get(429) ?? 0;
    if (refused === 0) problems.push('nothing was refused: there was no overload');
    return audit(site, { problems, mayBeUnavailable: true, notes: { shares: `${a} and ${b}`, refused } });
  },
};
