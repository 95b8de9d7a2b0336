const { parentPort } = require('node:worker_threads');

/**
 * Stands for an engine thread on a GPU whose context has died: it breaks every drawing, except those whose prompt is
 * "sound".
 */
parentPort.postMessage({ type: 'ready', device: 'cuda:0', memoryBytes: 2 ** 30 });
parentPort.on('message', ({ type, id, request }) => {
  if (type === 'close') return parentPort.close();
  if (request.prompt === 'waits') return;
  if (request.prompt === 'begins')
    return parentPort.postMessage({ type: 'started', id, promptChunks: 1, scheduler: '' });
  if (request.prompt === 'sound') {
    parentPort.postMessage({ type: 'stepped', drawings: 1, pictures: 1, rows: 2, stepMs: 1, engineMs: 1 });
    return parentPort.postMessage({ type: 'done', id, computeMs: 1 });
  }
  const message = 'CUDA failure 700: an illegal memory access was encountered';
  const outOfMemory = request.prompt === 'large' && { outOfMemory: true };
  parentPort.postMessage({ type: 'failed', id, failure: 'broken', message, ...outOfMemory });
});
