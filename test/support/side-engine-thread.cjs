const { appendFileSync } = require('node:fs');
const { join } = require('node:path');
const { workerData } = require('node:worker_threads');
const { startEngineBesideWith, startLane } = require('./faulty-lanes.cjs');

// An engine's settings name its device; what a lane is given does not. The second thread writes down what it is asked
// for.
if (workerData.device) startEngineBesideWith(module.filename);
else startLane(({ type }, part) => appendFileSync(join(workerData.cacheDir, 'side-thread'), `${part ?? type}\n`));
