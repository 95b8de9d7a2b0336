const { workerData } = require('node:worker_threads');
const { startEngineBesideWith, startLane } = require('./faulty-lanes.cjs');

const callsBeside = 3;
const longestMs = 20_000;

/**
 * The second thread decodes and enlarges nothing before the U-Net has been called so often beside it: where the engine
 * does not go on meanwhile, its pictures fail.
 */
if (workerData.device) startEngineBesideWith(module.filename);
else
  startLane((_, part) => {
    if (part !== 'vaeDecoder' && part !== 'upscaler') return;
    const { calls } = workerData;
    const enough = Atomics.load(calls, 0) + callsBeside;
    for (let made = Atomics.load(calls, 0); made < enough; made = Atomics.load(calls, 0))
      if (Atomics.wait(calls, 0, made, longestMs) === 'timed-out') throw new Error('The U-Net waits for this thread.');
  });
