const { existsSync, mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { parentPort, workerData } = require('node:worker_threads');

const mark = join(workerData.cacheDir, 'died');
if (!existsSync(mark)) {
  parentPort.postMessage = new Proxy(parentPort.postMessage, {
    apply(post, port, args) {
      post.apply(port, args);
      if (args[0].type !== 'progress' || args[0].step < 2) return;
      mkdirSync(workerData.cacheDir, { recursive: true });
      writeFileSync(mark, '');
      // Outside of every promise, so that nobody catches it.
      process.nextTick(() => {
        throw new Error('The thread dies on purpose.');
      });
    },
  });
}
require(join(__dirname, '../../dist/apps/inference/src/engine/engine-thread.js'));
