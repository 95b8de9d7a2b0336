const { join } = require('node:path');
const { workerData } = require('node:worker_threads');
const { startEngineBesideWith, startLane } = require('./faulty-lanes.cjs');

/**
 * The second thread has no memory for the first two pictures that are at least 128 pixels wide, and for none of 192; it
 * loses its GPU when it decodes one of 256. It has none for four texts of a prompt either.
 */
if (workerData.device) startEngineBesideWith(module.filename);
else {
  const { ModelSession } = require(join(__dirname, '../../dist/libs/diffusion/src/model/model-session.js'));
  const { run } = ModelSession.prototype;
  let left = 2;
  ModelSession.prototype.run = async function failing(feeds, output) {
    const [{ dims }] = Object.values(feeds);
    if (dims[3] === 32) throw new Error('CUDA failure 700: an illegal memory access was encountered');
    const isLongPrompt = dims.length === 2 && dims[0] >= 4;
    if (isLongPrompt || dims[3] === 24 || (dims[3] === 16 && left-- > 0))
      throw new Error('Failed to allocate memory for requested buffer of size 536870912');
    return run.call(this, feeds, output);
  };
  startLane(() => undefined);
}
