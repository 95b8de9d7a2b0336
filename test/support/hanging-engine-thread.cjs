const breakEngineOnce = require('./break-engine-once.cjs');

/** Not forever, because nothing can end a hanging thread. */
const hangMs = 6_000;

breakEngineOnce('hung', () => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, hangMs);
  process.exit();
});
