import { processesOf } from '../../support/service-process';
import { until } from '../../support/until';
import { audit, comeToRest } from '../audit';
import type { Row } from '../row';

/**
 * Longest time for the worker, and the api, to end in order; in the short form, on a busy machine, only a process that
 * does not end is slow.
 */
const deadlineMs = { long: 35_000, short: 120_000 };

/** SIGTERM to an api and all its workers at once, each of which is drawing a picture, while many more wait. */
export const fleetEnd: Row = {
  name: 'fleet-end',
  title: 'SIGTERM to a fleet, running and queued',
  sharedSite: 'sound workers',
  async run(site, size) {
    const { running, queued } = size === 'long' ? { running: 20, queued: 100 } : { running: 2, queued: 4 };
    const problems: string[] = [];
    const api = await site.anyApi();
    const workers = await site.anyWorkers(running);
    const caller = await site.newCaller(api);
    // Many steps of several pictures, so that each still draws its first one when the last of them has begun.
    const large = size === 'long' ? { steps: 50, num_generations: 1 } : { steps: 50, num_generations: 4 };
    const drawn = await caller.createMany(running, { webhook: site.receiver.url, ...large });
    await until(async () => {
      const rows = await site.query(`SELECT FROM tasks WHERE status = 'processing'`);
      return rows.length === drawn.length;
    }, `${running} pictures are being drawn`);
    await caller.createMany(queued, { webhook: site.receiver.url });
    const startedAt = Date.now();
    const endMs: number[] = [];
    await Promise.all(
      [api.process, ...workers].map(async (each) => {
        const how = await each.end('SIGTERM');
        endMs.push(Date.now() - startedAt);
        // Nest's hooks end a process by the signal that stopped it.
        if (how !== 'SIGTERM' && how !== 0) problems.push(`${each.name} ended with ${how}`);
      }),
    );
    if (Math.max(...endMs) > deadlineMs[size]) problems.push(`it took ${Math.max(...endMs)} ms to end`);
    const orphans = processesOf(site.dataDir);
    if (orphans.length > 0) problems.push(`${orphans.length} processes are left: ${orphans[0].command}`);
    const [held] = await site.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM tasks WHERE status = 'processing'`,
    );
    if (held.count > 0) problems.push(`${held.count} pictures were not given back`);
    await site.startApi({ port: Number(new URL(api.url).port) });
    await site.anyWorkers();
    problems.push(...(await comeToRest(site)));
    return audit(site, { problems, notes: { running, queued, 'all ended after ms': Math.max(...endMs) } });
  },
};
