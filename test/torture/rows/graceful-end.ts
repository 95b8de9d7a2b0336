import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../support/free-port';
import { processesOf } from '../../support/service-process';
import { audit, comeToRest } from '../audit';
import type { Row } from '../row';

/**
 * The launcher gives its processes 30 s, and PostgreSQL some more; in the short form, on a busy machine, only a process
 * that does not end is slow.
 */
const deadlineMs = { long: 35_000, short: 120_000 };

/** SIGTERM while pictures are drawn and many more wait; afterwards the service is started again. */
export const gracefulEnd: Row = {
  name: 'graceful-end',
  title: 'SIGTERM with jobs running and queued',
  sharedSite: 'launcher',
  async run(site, size) {
    const { rounds, jobs } = size === 'long' ? { rounds: 5, jobs: 120 } : { rounds: 1, jobs: 5 };
    const problems: string[] = [];
    const endMs: number[] = [];
    let service = site.launcher ?? (await site.startLauncher(await freePort()));
    const port = Number(new URL(service.url).port);
    const caller = await site.newCaller(service);
    for (let round = 0; round < rounds; round++) {
      await caller.createMany(Math.ceil(jobs / rounds), { webhook: site.receiver.url, steps: site.lastingSteps });
      await delay(Math.random() * 500);
      const startedAt = Date.now();
      const code = await service.process.end('SIGTERM');
      endMs.push(Date.now() - startedAt);
      if (code !== 0) problems.push(`it exits with ${code}`);
      const orphans = processesOf(site.dataDir);
      if (orphans.length > 0) problems.push(`${orphans.length} processes are left: ${orphans[0].command}`);
      service = await site.startLauncher(port);
    }
    if (Math.max(...endMs) > deadlineMs[size]) problems.push(`it took ${Math.max(...endMs)} ms to end`);
    problems.push(...(await comeToRest(site)));
    return audit(site, { problems, notes: { 'ended after ms': endMs.join(', ') } });
  },
};
