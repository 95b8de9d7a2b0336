import { audit, comeToRest } from '../../audit';
import type { Caller } from '../../caller';
import type { Row } from '../../row';
import type { Site } from '../../site';
import { startPictures } from '../trainings/training-site';
import { Fleet, migrateWith, underLoad } from './fleet';
import { Load } from './load';
import { deleteRecords, makeNewRecords, type NewRecord, readRecords } from './new-records';

/**
 * All processes of an older version are upgraded one by one, and rolled back, while two keys draw. Records with what
 * only the newer version knows are then drawn, read, listed and deleted by the older one.
 */
export const rolledUpgrade: Row = {
  name: 'rolled-upgrade',
  title: 'upgrade and roll back under load',
  async run(site, size) {
    const older = process.env.OLDER_CHECKOUT;
    if (!older) return audit(site, { skipped: 'OLDER_CHECKOUT is no path of an older version that is built' });
    const pauseMs = size === 'long' ? 15_000 : 2_000;
    const [picture] = await startPictures(site);
    await site.query('DROP SCHEMA public CASCADE');
    await site.query('CREATE SCHEMA public');
    await migrateWith(site, older);
    const fleet = await Fleet.start(site, older);
    const callers = [await site.newCaller(fleet), await site.newCaller(fleet)];
    const load = new Load(site, callers);
    const { records, problems, notes } = await roll({ site, fleet, older, picture, caller: callers[0], pauseMs });
    await load.stop();
    problems.push(...load.problems, ...(await comeToRest(site)));
    problems.push(...(await readRecords(callers[0], records)), ...fleet.badEnds, ...fleet.errors());
    const outcome = await audit(site, { problems, notes });
    outcome.problems.push(...(await deleteRecords(callers[0], records)));
    outcome.figures.serverErrors = site.ledger.serverErrors();
    return outcome;
  },
};

interface Rolled {
  site: Site;
  fleet: Fleet;
  older: string;
  picture: string;
  caller: Caller;
  pauseMs: number;
}

/** Old, migrated, mixed, all new, all old. */
async function roll({ site, fleet, older, picture, caller, pauseMs }: Rolled) {
  const records: NewRecord[] = [];
  const problems: string[] = [];
  const onNewApi = async (): Promise<void> => {
    records.push(...(await makeNewRecords(site, caller.to(fleet.urlOf(0)), picture)));
  };
  await underLoad(pauseMs);
  const migrationMs = await migrateWith(site);
  await underLoad(pauseMs);
  await fleet.replaceApi(0);
  await fleet.replaceWorker(0);
  await onNewApi();
  await underLoad(pauseMs);
  await migrateWith(site, older);
  await fleet.replaceApi(1, older);
  await fleet.replaceWorker(1, older);
  await underLoad(pauseMs);
  await fleet.replaceApi(1);
  await fleet.replaceWorker(1);
  await underLoad(pauseMs);
  await fleet.stopWorkers();
  await onNewApi();
  await migrateWith(site, older);
  for (const index of [0, 1]) await fleet.replaceApi(index, older);
  await fleet.startWorkers(older);
  await underLoad(pauseMs);
  return { records, problems, notes: { 'migration under load ms': migrationMs, 'records with news': records.length } };
}
