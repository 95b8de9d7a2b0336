const { existsSync } = require('node:fs');
const { workerData } = require('node:worker_threads');
const { breakLaneOnce, decodesPicture, startEngineBesideWith } = require('./faulty-lanes.cjs');

const longestMs = 60_000;

// The second thread hangs when it decodes the first picture, until a file says that this was seen: nothing can end a
// hanging thread.
if (workerData.device) startEngineBesideWith(module.filename);
else breakLaneOnce('hanging-side-thread', hang, decodesPicture);

function hang(mark) {
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  for (let ms = 0; ms < longestMs && !existsSync(`${mark}-ends`); ms += 100) Atomics.wait(nothing, 0, 0, 100);
}
