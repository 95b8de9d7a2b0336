import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until';
import { audit, comeToRest } from '../audit';
import { p95, quantile, type Row } from '../row';
import type { Site } from '../site';

/** Time until the job of a killed worker is drawn again, at the 95th percentile. */
const restartLimitMs = 20_000;

/** Two workers draw; one of them is repeatedly killed and replaced. */
export const workerKill: Row = {
  name: 'worker-kill',
  title: 'kill -9 of a random worker',
  sharedSite: 'killed workers',
  async run(site, size) {
    const { jobs, kills } = size === 'long' ? { jobs: 200, kills: 20 } : { jobs: 4, kills: 1 };
    const api = await site.anyApi();
    const caller = await site.newCaller(api);
    const workers = await site.anyWorkers(2);
    const watch = new RestartWatch(site);
    const picture = { webhook: site.receiver.url, steps: site.lastingSteps };
    for (let kill = 1; kill <= kills; kill++) {
      // Enough tasks at a time that the killed worker is drawing one.
      await caller.createMany(Math.floor((kill * jobs) / kills) - site.ledger.entries.size, picture);
      await until(async () => (await isDrawing(site)) || (await isIdle(site)), 'a picture is being drawn');
      await delay(Math.random() * 100);
      const victim = Math.floor(Math.random() * workers.length);
      await workers[victim].end('SIGKILL');
      await watch.note(Date.now());
      workers[victim] = await site.startWorker();
    }
    const problems = await comeToRest(site);
    const restartsMs = await watch.stop();
    // A short run on a busy machine says little about time, so it is reported but not checked.
    if (size === 'long' && p95(restartsMs) > restartLimitMs)
      problems.push(`killed jobs restart in ${p95(restartsMs)} ms (p95)`);
    if (size === 'long' && restartsMs.length === 0) problems.push('no worker was killed while it drew');
    return audit(site, {
      problems,
      notes: {
        kills,
        'jobs killed': restartsMs.length,
        'restart median ms': quantile(restartsMs, 0.5),
        'restart p95 ms': p95(restartsMs),
      },
    });
  },
};

/** On a busy machine all may have been drawn before the check: then an idle worker is killed. */
async function isIdle(site: Site): Promise<boolean> {
  const rows = await site.query(`SELECT FROM tasks WHERE status IN ('queued', 'processing') LIMIT 1`);
  return rows.length === 0;
}

async function isDrawing(site: Site): Promise<boolean> {
  const rows = await site.query(`SELECT FROM tasks WHERE status = 'processing' LIMIT 1`);
  return rows.length > 0;
}

/** Measures, from the rows, how long a job whose worker was killed waits until it is drawn again. */
class RestartWatch {
  private readonly waiting = new Map<string, { attempt: number; killedAt: number }>();
  private readonly restartsMs: number[] = [];
  private readonly watching: Promise<void>;
  private stopped = false;

  constructor(private readonly site: Site) {
    this.watching = this.watch();
  }

  /** Records what was being drawn when a worker was killed; the other worker's task ends without another attempt. */
  async note(killedAt: number): Promise<void> {
    const rows = await this.site.query<{ id: string; attempt: number }>(
      `SELECT id, attempt FROM tasks WHERE status = 'processing'`,
    );
    for (const { id, attempt } of rows) this.waiting.set(id, { attempt, killedAt });
  }

  async stop(): Promise<number[]> {
    this.stopped = true;
    await this.watching;
    return this.restartsMs;
  }

  private async watch(): Promise<void> {
    for (; !this.stopped; await delay(100)) {
      if (this.waiting.size === 0) continue;
      const rows = await this.site.query<{ id: string; attempt: number }>(
        'SELECT id, attempt FROM tasks WHERE id = ANY($1)',
        [[...this.waiting.keys()]],
      );
      for (const { id, attempt } of rows) {
        const noted = this.waiting.get(id);
        if (!noted || attempt === noted.attempt) continue;
        this.restartsMs.push(Date.now() - noted.killedAt);
        this.waiting.delete(id);
      }
    }
  }
}
