const { parentPort, workerData } = require('node:worker_threads');

/**
 * Stands for an engine thread that chooses a GPU, and ends with its first drawing; the next thread that asks for that
 * GPU has none.
 */
if (workerData.device === 'auto') {
  parentPort.postMessage({ type: 'ready', device: 'cuda:0', memoryBytes: 2 ** 30 });
  parentPort.on('message', () => process.exit(1));
} else parentPort.postMessage({ type: 'unavailable', reason: `there is no ${workerData.device}` });
