const { existsSync, mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { parentPort, workerData } = require('node:worker_threads');

/** Not forever, because nothing can end a hanging thread. */
const hangMs = 6_000;
const mark = join(workerData.cacheDir, 'hung');
if (!existsSync(mark)) {
  parentPort.postMessage = new Proxy(parentPort.postMessage, {
    apply(post, port, args) {
      post.apply(port, args);
      if (args[0].type !== 'progress' || args[0].step < 2) return;
      mkdirSync(workerData.cacheDir, { recursive: true });
      writeFileSync(mark, '');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, hangMs);
      process.exit();
    },
  });
}
require(join(__dirname, '../../dist/apps/inference/src/engine/engine-thread.js'));
