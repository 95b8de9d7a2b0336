const { join } = require('node:path');
const crashOnKiller = require('./crash-on-killer.cjs');

/** A real engine thread, which a killer ends. */
crashOnKiller(() => {
  // Outside of every promise, so that nobody catches it.
  process.nextTick(() => {
    throw new Error('The thread dies on purpose.');
  });
});
require(join(__dirname, '../../dist/apps/inference/src/engine/engine-thread.js'));
