const { workerData } = require('node:worker_threads');
const { lengthenCalls, startEngineBesideWith, startLane } = require('./faulty-lanes.cjs');

// Calls of the U-Net are longer than the decoding beside them, which they wait for.
if (workerData.device) {
  startEngineBesideWith(module.filename);
  lengthenCalls(workerData.cacheDir);
} else startLane(() => undefined);
