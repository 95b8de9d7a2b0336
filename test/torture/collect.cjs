const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');

/**
 * Preloaded into a process: a SIGUSR2 collects its garbage at once. The flag is set only meanwhile, because V8 takes
 * the bundles' compiled code from its cache only under the flags that it was written with.
 */
process.on('SIGUSR2', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  collect();
});
