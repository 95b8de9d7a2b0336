const { workerData } = require('node:worker_threads');
const { startEngineBesideWith, startLane, waitForCalls } = require('./faulty-lanes.cjs');

/**
 * The second thread decodes and enlarges nothing before the U-Net has been called so often beside it: where the engine
 * does not go on meanwhile, its pictures fail.
 */
if (workerData.device) startEngineBesideWith(module.filename);
else
  startLane(
    () => undefined,
    (part) => (part === 'vaeDecoder' || part === 'upscaler') && waitForCalls(3),
  );
