const { workerData } = require('node:worker_threads');
const { startEngineBesideWith, startLane, waitForCalls } = require('./faulty-lanes.cjs');

/**
 * After the trial of a model and the first text, the second thread encodes nothing before the U-Net has been called so
 * often beside it: where the engine does not go on meanwhile, its pictures fail.
 */
if (workerData.device) startEngineBesideWith(module.filename);
else {
  let encoded = 0;
  startLane(
    () => undefined,
    (part) => part === 'textEncoder' && ++encoded > 2 && waitForCalls(3),
  );
}
