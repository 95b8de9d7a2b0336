import { rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { trainingProcesses } from '../../../support/trainings';
import { until } from '../../../support/until';
import { audit, comeToRest } from '../../audit';
import type { Outcome, Row, Size } from '../../row';
import type { Site } from '../../site';
import { mountSmallDisk } from '../../small-disk';
import { startPictures, TrainingCaller, trainingProblems } from './training-site';

interface Place {
  site: Site;
  size: Size;
  newCaller: () => Promise<TrainingCaller>;
  /** Ends with a picture of another key, which is drawn whatever trains. */
  picture: () => Promise<string[]>;
}

/** A fault while Fine-Tunes are trained; `fault` returns what is wrong beside what each of these rows checks. */
function trainingRow(
  name: string,
  title: string,
  fault: (place: Place) => Promise<{ problems: string[]; notes?: Outcome['notes']; skipped?: string }>,
): Row {
  return {
    name: `training-${name}`,
    group: 'training',
    title,
    async run(site, size) {
      const pictures = await startPictures(site);
      site.env.MAX_TRAININGS_PER_KEY = '1';
      const callers: TrainingCaller[] = [];
      const newCaller = async (): Promise<TrainingCaller> => {
        const caller = new TrainingCaller(site, await site.newCaller(await site.anyApi()), pictures);
        callers.push(caller);
        return caller;
      };
      const picture = async () => (await site.newCaller(await site.anyApi())).createMany(1);
      const { problems, notes, skipped } = await fault({ site, size, newCaller, picture });
      problems.push(...(await comeToRest(site, 600_000)));
      await until(async () => trainingProcessesOf(site).length === 0, 'nothing trains any more').catch(
        ({ message }: Error) => problems.push(message),
      );
      const { problems: found, swept } = await trainingProblems(site, callers);
      problems.push(...found);
      return audit(site, { problems, notes: { ...notes, swept }, ...(skipped && { skipped }) });
    },
  };
}

const trainingProcessesOf = (site: Site): number[] => site.workerPids().flatMap((pid) => trainingProcesses(pid));

/** Workers, and processes that train, are killed in the middle: the weights are those of a training in peace. */
const kill = trainingRow('kill', 'kill -9 while a Fine-Tune is trained', async (place) => {
  const { site, size, newCaller, picture } = place;
  const [kills, steps] = size === 'long' ? [6, 600] : [2, 100];
  let [worker] = await site.anyWorkers(1);
  const [calm, disturbed] = [await newCaller(), await newCaller()];
  const undisturbed = await calm.train({ steps });
  await calm.reached(undisturbed, steps);
  const id = await disturbed.train({ steps });
  await picture();
  for (let i = 0; i < kills; i++) {
    await disturbed.reached(id, Math.floor((steps * (i + 1)) / (kills + 2)));
    await delay(Math.random() * 100);
    const [child] = trainingProcesses(worker.pid);
    if (i % 2 === 0 && child) process.kill(child, 'SIGKILL');
    else {
      await worker.end('SIGKILL');
      worker = await site.startWorker();
    }
  }
  const problems = await comeToRest(site, 600_000);
  const [expected, found] = [await calm.get(undisturbed), await disturbed.get(id)];
  if (expected.status !== 'ready' || found.weights?.sha256 !== expected.weights?.sha256)
    problems.push(`after ${kills} kills: ${found.status}, ${found.error_message}, other weights`);
  return { problems, notes: { kills } };
});

/** The disk is full while checkpoints and weights are to be stored; then there is room again. */
const diskFull = trainingRow('disk-full', 'disk full while a Fine-Tune is trained', async (place) => {
  const { site, size, newCaller, picture } = place;
  const disk = await mountSmallDisk(site);
  if ('skipped' in disk) return { problems: [], ...disk };
  const { ballast, fill } = disk;
  await site.anyWorkers(1);
  const caller = await newCaller();
  const id = await caller.train();
  // While there is no room no training is begun, so the disk fills up under one that is.
  await caller.reached(id, 10);
  await fill();
  await caller.reached(id, 50);
  await delay(1_000);
  await rm(ballast);
  const problems = await comeToRest(site, 600_000);
  const { status, error_message: error } = await caller.get(id);
  if (status !== 'ready') problems.push(`with room again it is ${status}: ${error}`);
  if (size === 'long') {
    await fill();
    const without = await caller.train();
    await delay(10_000);
    const { status: meanwhile } = await caller.get(without);
    if (meanwhile !== 'queued') problems.push(`without room it is ${meanwhile}`);
    await rm(ballast);
  }
  await picture();
  return { problems };
});

/** Trainings are canceled and deleted while they wait, fetch, train, and afterwards. */
const cancels = trainingRow('cancels', 'cancel or delete at each stage of a training', async (place) => {
  const { site, size, newCaller, picture } = place;
  const turns = size === 'long' ? 80 : 5;
  await site.anyWorkers(1);
  const caller = await newCaller();
  const problems: string[] = [];
  const counts: Record<string, number> = {};
  const isThere = ['true', `status <> 'queued'`, 'step > 0', 'step >= 50', `status = 'succeeded'`];
  for (let i = 0; i < turns; i++) {
    const id = await caller.train({ steps: 60 });
    if (i === 0) await picture();
    await until(
      async () =>
        (
          await site.query(
            `SELECT FROM trainings JOIN tasks USING (id)
             WHERE id = $1 AND (${isThere[i % isThere.length]} OR completed_at IS NOT NULL)`,
            [id],
          )
        ).length > 0,
      'the training has come far enough to be ended',
      300_000,
    );
    await delay(Math.random() * 100);
    const kind = i % 2 ? 'canceled' : 'deleted';
    const status = await caller.end(id, kind);
    const answer = status === 409 && kind === 'canceled' ? 'too late' : kind;
    counts[answer] = (counts[answer] ?? 0) + 1;
    if (![200, 201, 409].includes(status)) problems.push(`${kind}: answered ${status}`);
    if (status < 300 && kind === 'canceled') {
      const { status: after, weights } = await caller.get(id);
      if (after !== 'canceled' || weights) problems.push(`a canceled training is ${after}`);
    }
  }
  return { problems, notes: counts };
});

/** Faults while Fine-Tunes are trained. */
export const trainings: readonly Row[] = [kill, diskFull, cancels];
