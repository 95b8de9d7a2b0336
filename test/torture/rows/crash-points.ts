import { until } from '../../support/until';
import { audit, comeToRest } from '../audit';
import type { Caller } from '../caller';
import type { Row } from '../row';
import type { ServiceProcess } from '../../support/service-process';
import type { Site } from '../site';

const workerPoints = ['after-claim', 'after-file-write', 'before-commit', 'after-commit'];

/** Crashes per picture, before a worker that does not crash draws it. */
const mostDeaths = 3;

/**
 * Processes die between two steps of a job, at every step; only a death right after a webhook was sent may repeat it.
 */
export const crashPoints: Row = {
  name: 'crash-points',
  title: 'crash at each named point',
  sharedSite: 'killed workers',
  async run(site, size) {
    const rounds = size === 'long' ? 20 : 1;
    const api = await site.anyApi();
    const caller = await site.newCaller(api);
    const problems: string[] = [];
    for (let i = 0; i < rounds * workerPoints.length; i++) {
      const point = workerPoints[i % workerPoints.length];
      await caller.createMany(2, { webhook: site.receiver.url });
      await spare(site);
      const worker = await site.startWorker({ env: { DARKROOM_CRASH_AT: `${point}:${1 + (i % 3)}` } });
      problems.push(...(await crash(site, caller, worker, point, fewAreQueued)));
    }
    const survivor = await site.startWorker();
    problems.push(...(await comeToRest(site)));
    const before = await audit(site, { problems });
    const beforeWebhooks = site.receiver.received.length;

    for (let round = 0; round < rounds; round++) {
      const doomed = await site.startApi({ env: { DARKROOM_CRASH_AT: 'after-webhook-send' } });
      const callerOfDoomed = await site.newCaller(doomed);
      // Whichever claims a delivery first makes it, and that is nearly always the one that has run for longer.
      api.process.signal('SIGSTOP');
      try {
        problems.push(...(await crash(site, callerOfDoomed, doomed.process, 'after-webhook-send', allIsDelivered)));
      } finally {
        api.process.signal('SIGCONT');
      }
      problems.push(...(await comeToRest(site)));
    }
    if (site.isLastRow) await survivor.end('SIGTERM');
    const after = await audit(site, { problems, mayRepeatWebhooks: true });
    const records = new Set(site.receiver.received.map(({ headers }) => headers['webhook-id'])).size;
    const repeats = site.receiver.received.length - records;
    if (repeats > rounds) after.problems.push(`${repeats} webhooks were repeated after ${rounds} crashes`);
    return {
      figures: { ...after.figures, duplicates: before.figures.duplicates + after.figures.duplicates },
      problems: [...new Set([...before.problems, ...after.problems])],
      notes: {
        ...after.notes,
        crashes: rounds * (workerPoints.length + 1),
        'webhooks repeated after the last point': repeats,
        'webhooks before it': beforeWebhooks,
        'left to the sweeper': Number(before.notes['left to the sweeper']) + Number(after.notes['left to the sweeper']),
      },
    };
  },
};

/** Draws the pictures that met many crashes, which would otherwise soon fail, as they should. */
async function spare(site: Site): Promise<void> {
  const areInDanger = async (): Promise<boolean> => {
    const rows = await site.query(
      `SELECT id FROM tasks WHERE status IN ('queued', 'processing') AND deaths >= ${mostDeaths} LIMIT 1`,
    );
    return rows.length > 0;
  };
  if (!(await areInDanger())) return;
  const sound = await site.startWorker();
  await until(async () => !(await areInDanger()), 'the pictures in danger are drawn', 180_000);
  await sound.end('SIGTERM');
}

/** Gives a process that is to crash work to do, as often as the site lacks it, until it reaches the point. */
async function crash(
  site: Site,
  caller: Caller,
  doomed: ServiceProcess,
  point: string,
  lacksWork: (site: Site) => Promise<boolean>,
): Promise<string[]> {
  await until(
    async () => {
      if (!doomed.isRunning) return true;
      if (await lacksWork(site)) await caller.create({ webhook: site.receiver.url });
      return false;
    },
    `a process crashed ${point}`,
    240_000,
  );
  const how = await doomed.ended;
  return how === 'SIGKILL' ? [] : [`${point}: the process ended with ${how}: ${doomed.output.slice(-500)}`];
}

async function fewAreQueued(site: Site): Promise<boolean> {
  const queued = await site.query(`SELECT FROM tasks WHERE status = 'queued' LIMIT 2`);
  return queued.length < 2;
}

/** Then deliveries come one at a time: a crash may repeat each of those that are under way. */
async function allIsDelivered(site: Site): Promise<boolean> {
  const open = await site.query(
    `SELECT id FROM tasks WHERE status IN ('queued', 'processing')
     UNION ALL SELECT id FROM webhook_deliveries WHERE status = 'pending'`,
  );
  return open.length === 0;
}
