import type { Row } from '../row';
import { apiKill } from './api-kill';
import { crashPoints } from './crash-points';
import { databaseRestart } from './database-restart';
import { diskFull } from './disk-full';
import { fleetEnd } from './fleet-end';
import { frozenWorker } from './frozen-worker';
import { launcherKill } from './launcher-kill';
import { bursts } from './neighbour/bursts';
import { hyphens } from './neighbour/hyphens';
import { lists } from './neighbour/lists';
import { longPrompts } from './neighbour/long-prompts';
import { pictures } from './neighbour/pictures';
import { randomShapes } from './neighbour/random-shapes';
import { sandbox } from './neighbour/sandbox';
import { streams } from './neighbour/streams';
import { uploadsThatTrickle } from './neighbour/uploads';
import { weights } from './neighbour/weights';
import { longKeys, manyFields } from './neighbour/huge-bodies';
import { receivers } from './receivers';
import { queueLoss } from './queue-loss';
import { randomEndings } from './random-endings';
import { storeFaults } from './store-faults';
import { trainings } from './trainings';
import { wrongClock } from './wrong-clock';
import { workerKill } from './worker-kill';

/** Every fault. */
export const rows: readonly Row[] = [
  crashPoints,
  queueLoss,
  frozenWorker,
  workerKill,
  databaseRestart,
  launcherKill,
  receivers,
  diskFull,
  apiKill,
  fleetEnd,
  randomEndings,
  storeFaults,
  wrongClock,
  ...trainings,
  // One key is hostile, and another must not notice.
  hyphens,
  longKeys,
  manyFields,
  bursts,
  lists,
  sandbox,
  longPrompts,
  weights,
  streams,
  uploadsThatTrickle,
  pictures,
  randomShapes,
];
