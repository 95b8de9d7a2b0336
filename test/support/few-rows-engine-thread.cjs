const { join } = require('node:path');

/**
 * Starts a real engine thread whose U-Nets take at most three rows, as a graph does that was exported for a fixed
 * number of pictures.
 */
const { ModelSession } = require(join(__dirname, '../../dist/libs/diffusion/src/model/model-session.js'));
const { run } = ModelSession.prototype;
ModelSession.prototype.run = async function runFewRows(feeds, output) {
  if (feeds.timestep && feeds.sample.dims[0] > 3) throw new Error('Reshape: the input tensor cannot be reshaped.');
  return run.call(this, feeds, output);
};
require(join(__dirname, '../../dist/apps/inference/src/engine/engine-thread.js'));
