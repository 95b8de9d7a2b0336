const breakEngineOnce = require('./break-engine-once.cjs');

breakEngineOnce('died', () => {
  // Outside of every promise, so that nobody catches it.
  process.nextTick(() => {
    throw new Error('The thread dies on purpose.');
  });
});
