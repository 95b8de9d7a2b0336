import { setTimeout as delay } from 'node:timers/promises';
import { heartbeatTimeoutMs } from '@app/tasks';
import { until } from '../../support/until';
import { audit, comeToRest } from '../audit';
import type { Caller } from '../caller';
import type { Row } from '../row';
import type { ServiceProcess } from '../../support/service-process';
import type { Site } from '../site';

const frozenMs = 3 * heartbeatTimeoutMs;

/** A worker is suspended in the middle of a picture for three times its lock, and resumes when another has drawn it. */
export const frozenWorker: Row = {
  name: 'frozen-worker',
  title: 'frozen worker (SIGSTOP, 3 x lock)',
  sharedSite: 'killed workers',
  async run(site, size) {
    const rounds = size === 'long' ? 5 : 1;
    const api = await site.anyApi();
    const caller = await site.newCaller(api);
    const problems: string[] = [];
    let taken = 0;
    const [frozen, other] = await site.anyWorkers(2);
    other.signal('SIGSTOP');
    await caller.createMany(1, { webhook: site.receiver.url });
    problems.push(...(await comeToRest(site)));
    for (let round = 0; round < rounds; round++) {
      const held = await until(() => freeze(site, caller, frozen), 'a worker is frozen while it draws');
      other.signal('SIGCONT');
      await delay(frozenMs);
      const look = () => rowOf(site, held);
      // In the short form the other one, which has just loaded the model on a busy machine, has its time.
      if (size === 'short')
        await until(async () => (await look()).status === 'succeeded', 'the other worker has drawn it').catch(
          () => undefined,
        );
      const before = await look();
      if (before.status === 'succeeded' && before.attempt === 2) taken++;
      else problems.push(`after ${frozenMs} ms it was ${before.status}, attempt ${before.attempt}`);
      frozen.signal('SIGCONT');
      // Its picture is discarded, and it continues with other work.
      await caller.createMany(3, { webhook: site.receiver.url });
      problems.push(...(await comeToRest(site)));
      const after = await look();
      if (after.attempt !== before.attempt || after.completed_at.getTime() !== before.completed_at?.getTime())
        problems.push('the row moved after it had terminated');
      if (round + 1 < rounds) other.signal('SIGSTOP');
    }
    return audit(site, { problems, notes: { 'frozen ms': frozenMs, 'drawn by the other one': taken } });
  },
};

/**
 * Stops a worker in the middle of a picture. @returns the picture's id; undefined where it was drawn before anybody
 * looked.
 */
async function freeze(site: Site, caller: Caller, worker: ServiceProcess): Promise<string | undefined> {
  const { id } = await caller.create({ webhook: site.receiver.url, model: site.trainableModel, steps: 50 });
  if (!id) return undefined;
  await until(async () => (await rowOf(site, id)).status !== 'queued', 'a picture is being drawn');
  worker.signal('SIGSTOP');
  await delay(100);
  if ((await rowOf(site, id)).status === 'processing') return id;
  worker.signal('SIGCONT');
  return undefined;
}

async function rowOf(site: Site, id: string): Promise<{ status: string; attempt: number; completed_at: Date }> {
  const text = 'SELECT status, attempt, completed_at FROM tasks WHERE id = $1';
  return (await site.query<{ status: string; attempt: number; completed_at: Date }>(text, [id]))[0];
}
