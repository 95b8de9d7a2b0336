import { setTimeout as delay } from 'node:timers/promises';
import { heartbeatTimeoutMs } from '@app/queue';
import { until } from '../../support/until';
import { audit, comeToRest } from '../audit';
import type { Row } from '../row';

const frozenMs = 3 * heartbeatTimeoutMs;

/** A worker is stopped in the middle of a picture for three times its lock, and wakes up when another has drawn it. */
export const frozenWorker: Row = {
  name: 'frozen-worker',
  title: 'frozen worker (SIGSTOP, 3 x lock)',
  async run(site, size) {
    const rounds = size === 'long' ? 5 : 1;
    const api = await site.startApi();
    const caller = await site.newCaller(api);
    const problems: string[] = [];
    let taken = 0;
    const [frozen, other] = [await site.startWorker(), await site.startWorker()];
    other.signal('SIGSTOP');
    await caller.createMany(1, { webhook: site.receiver.url });
    problems.push(...(await comeToRest(site)));
    for (let round = 0; round < rounds; round++) {
      const held = await until(async () => {
        await caller.create({ webhook: site.receiver.url, steps: 10 });
        const id = await until(
          async () => {
            const rows = await site.query<{ id: string }>(`SELECT id FROM image_tasks WHERE status = 'processing'`);
            return rows[0]?.id;
          },
          'a picture is being drawn',
          20_000,
        );
        frozen.signal('SIGSTOP');
        await delay(100);
        const [row] = await site.query<{ status: string }>('SELECT status FROM image_tasks WHERE id = $1', [id]);
        if (row.status === 'processing') return id;
        frozen.signal('SIGCONT');
        return undefined;
      }, 'a worker is frozen while it draws');
      other.signal('SIGCONT');
      await delay(frozenMs);
      const [before] = await site.query<{ status: string; attempt: number; completed_at: Date }>(
        'SELECT status, attempt, completed_at FROM image_tasks WHERE id = $1',
        [held],
      );
      if (before.status === 'succeeded' && before.attempt === 2) taken++;
      else problems.push(`after ${frozenMs} ms it was ${before.status}, attempt ${before.attempt}`);
      frozen.signal('SIGCONT');
      // What it had drawn is thrown away, and it goes on with other work.
      await caller.createMany(3, { webhook: site.receiver.url });
      problems.push(...(await comeToRest(site)));
      const [after] = await site.query<{ attempt: number; completed_at: Date }>(
        'SELECT attempt, completed_at FROM image_tasks WHERE id = $1',
        [held],
      );
      if (after.attempt !== before.attempt || after.completed_at.getTime() !== before.completed_at?.getTime())
        problems.push('the row moved after it had terminated');
      if (round + 1 < rounds) other.signal('SIGSTOP');
    }
    return audit(site, { problems, notes: { 'frozen ms': frozenMs, 'drawn by the other one': taken } });
  },
};
