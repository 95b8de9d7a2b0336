const { existsSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { workerData } = require('node:worker_threads');
const { startEngineBesideWith, startLane } = require('./faulty-lanes.cjs');

// The second thread dies when it decodes the first picture. A file notes that it happened.
if (workerData.device) startEngineBesideWith(module.filename);
else
  startLane((_, part) => {
    const mark = join(workerData.cacheDir, 'dying-side-thread');
    if (part !== 'vaeDecoder' || existsSync(mark)) return;
    writeFileSync(mark, '');
    throw new Error('The second thread dies on purpose.');
  });
