const { existsSync, mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { parentPort, workerData } = require('node:worker_threads');

/**
 * Starts a real engine thread with a fault after the second step of its first drawing. A file of this name notes that
 * it happened.
 */
module.exports = function breakEngineOnce(name, fault) {
  const mark = join(workerData.cacheDir, name);
  if (!existsSync(mark)) {
    parentPort.postMessage = new Proxy(parentPort.postMessage, {
      apply(post, port, args) {
        post.apply(port, args);
        if (args[0].type !== 'progress' || args[0].step < 2) return;
        mkdirSync(workerData.cacheDir, { recursive: true });
        writeFileSync(mark, '');
        fault();
      },
    });
  }
  require(join(__dirname, '../../dist/apps/inference/src/engine/engine-thread.js'));
};
