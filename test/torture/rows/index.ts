import type { Row } from '../row';
import { apiKill } from './api-kill';
import { crashPoints } from './crash-points';
import { databaseRestart } from './database-restart';
import { diskFull } from './disk-full';
import { fleetEnd } from './fleet-end';
import { frozenWorker } from './frozen-worker';
import { launcherKill } from './launcher-kill';
import { bursts } from './neighbour/bursts';
import { lists } from './neighbour/lists';
import { pictures } from './neighbour/pictures';
import { randomShapes } from './neighbour/random-shapes';
import { uploadsThatTrickle } from './neighbour/uploads';
import { randomEndings } from './random-endings';
import { rolledUpgrade } from './rolled';
import { storeFaults } from './store-faults';
import { trainings } from './trainings';
import { workerKill } from './worker-kill';

/** Every fault. */
export const rows: readonly Row[] = [
  crashPoints,
  frozenWorker,
  workerKill,
  databaseRestart,
  launcherKill,
  diskFull,
  apiKill,
  fleetEnd,
  randomEndings,
  storeFaults,
  rolledUpgrade,
  ...trainings,
  // One key is hostile, and another must not notice.
  bursts,
  lists,
  uploadsThatTrickle,
  pictures,
  randomShapes,
];
