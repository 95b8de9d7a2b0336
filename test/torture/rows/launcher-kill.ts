import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../support/free-port';
import { audit, comeToRest } from '../audit';
import type { Row } from '../row';

/** The launcher is killed and restarted at once, before its children have noticed. */
export const launcherKill: Row = {
  name: 'launcher-kill',
  title: 'parent kill -9 with the embedded database',
  sharedSite: 'launcher',
  async run(site, size) {
    const kills = size === 'long' ? 20 : 1;
    const port = await freePort();
    const problems: string[] = [];
    const startMs: number[] = [];
    let service = await site.startLauncher(port);
    const caller = await site.newCaller(service);
    for (let kill = 0; kill < kills; kill++) {
      await caller.createMany(3, { webhook: site.receiver.url, steps: site.lastingSteps });
      await delay(Math.random() * 500);
      await service.process.end('SIGKILL');
      const killedAt = Date.now();
      service = await site.startLauncher(port);
      startMs.push(Date.now() - killedAt);
      const servers = postmasters(realpathSync(join(site.dataDir, 'postgres', 'data')));
      if (servers !== 1) problems.push(`${servers} postmasters after kill ${kill + 1}`);
    }
    problems.push(...(await comeToRest(site)));
    const outcome = await audit(site, {
      problems,
      // One may have been in transit when everything was killed.
      mayRepeatWebhooks: true,
      notes: { starts: `${startMs.length} of ${kills}`, 'slowest start ms': Math.max(...startMs) },
    });
    if (!site.isLastRow) return outcome;
    const code = await service.process.end('SIGTERM');
    if (code !== 0) outcome.problems.push(`at the end it exits with ${code}`);
    return outcome;
  },
};

/**
 * The number of PostgreSQL servers that have a cluster open, without their child processes, which have another command
 * line.
 */
function postmasters(data: string): number {
  return readdirSync('/proc').filter((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    try {
      const [program, ...words] = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0');
      return program.endsWith('/postgres') && words.includes(data);
    } catch {
      return false;
    }
  }).length;
}
