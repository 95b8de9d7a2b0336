const { isMainThread, workerData } = require('node:worker_threads');

/** Loaded by every thread of a real worker (`NODE_OPTIONS`): a killer ends the process, as a runtime's fault would. */
if (!isMainThread && workerData?.cacheDir)
  require('./faulty-threads.cjs').crashOnKiller(() => process.kill(process.pid, 'SIGKILL'));
