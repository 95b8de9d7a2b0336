const { appendFileSync, existsSync } = require('node:fs');
const { join } = require('node:path');
const { workerData } = require('node:worker_threads');
const { hangUntil, startEngineBesideWith, startLane } = require('./faulty-lanes.cjs');

// The second thread writes down what it decodes, and the first decoding lasts until a file says that it was seen.
if (workerData.device) startEngineBesideWith(module.filename);
else
  startLane(
    () => undefined,
    (part) => {
      if (part !== 'vaeDecoder') return;
      const file = join(workerData.cacheDir, 'side-thread');
      const isFirst = !existsSync(file);
      appendFileSync(file, `${part}\n`);
      if (isFirst) hangUntil(`${file}-goes-on`);
    },
  );
