const { workerData } = require('node:worker_threads');
const { breakLaneOnce, startEngineWith } = require('./faulty-lanes.cjs');

// An engine's settings name its device; what a lane is given does not.
if (workerData.device) startEngineWith(module.filename);
else
  breakLaneOnce('lane-died', () => {
    throw new Error('The lane dies on purpose.');
  });
