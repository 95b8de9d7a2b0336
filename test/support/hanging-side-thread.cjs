const { existsSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { workerData } = require('node:worker_threads');
const { startEngineBesideWith, startLane } = require('./faulty-lanes.cjs');

const longestMs = 60_000;

// The second thread hangs when it decodes the first picture, until a file says that this was seen: nothing can end a
// hanging thread.
if (workerData.device) startEngineBesideWith(module.filename);
else
  startLane((_, part) => {
    const mark = join(workerData.cacheDir, 'hanging-side-thread');
    if (part !== 'vaeDecoder' || existsSync(mark)) return;
    writeFileSync(mark, '');
    const nothing = new Int32Array(new SharedArrayBuffer(4));
    for (let ms = 0; ms < longestMs && !existsSync(`${mark}-ends`); ms += 100) Atomics.wait(nothing, 0, 0, 100);
  });
