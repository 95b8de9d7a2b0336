import { join } from 'node:path';
import { audit, comeToRest } from '../audit';
import type { Row } from '../row';
import { root } from '../service-process';

const offMs = 60_000;

/** Two workers whose clocks are wrong, one by a minute early and one late, stand beside a sound one. */
export const wrongClock: Row = {
  name: 'wrong-clock',
  title: 'clock +-60 s',
  async run(site, size) {
    const api = await site.startApi();
    const nodeOptions = ['--require', join(root, 'test', 'torture', 'clock.cjs')];
    const wrong = await Promise.all(
      [offMs, -offMs].map((ms) =>
        site.startWorker({ env: { TORTURE_CLOCK_MS: String(ms) }, nodeOptions, health: 'live' }),
      ),
    );
    await site.startWorker();
    const caller = await site.newCaller(api);
    await caller.createMany(size === 'long' ? 100 : 8, { webhook: site.receiver.url });
    const problems = await comeToRest(site);
    for (const { output } of wrong) {
      if (!/nothing is taken from the queues/.test(output))
        problems.push('a worker does not say that its clock is wrong');
      if (/"msg":"drawing"/.test(output)) problems.push('a worker draws though its clock is wrong');
    }
    const [{ stolen }] = await site.query<{ stolen: number }>(
      'SELECT count(*)::int AS stolen FROM image_tasks WHERE attempt <> 1',
    );
    if (stolen > 0) problems.push(`${stolen} pictures were taken from the worker that drew them`);
    return audit(site, { problems, notes: { 'clocks wrong by s': `${offMs / 1000}, -${offMs / 1000}` } });
  },
};
