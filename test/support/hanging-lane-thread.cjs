const { workerData } = require('node:worker_threads');
const { breakLaneOnce, startEngineWith } = require('./faulty-lanes.cjs');

// An engine's settings name its device; what a lane is given does not.
if (workerData.device) startEngineWith(module.filename);
else
  // Not forever, because nothing can end a hanging thread.
  breakLaneOnce('lane-hung', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6_000));
