/** Building blocks of the faults in `faulty-threads.cjs`: they start a worker's engine thread and observe it. */
const { existsSync, mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { parentPort, workerData } = require('node:worker_threads');

const built = (...path) => require(join(__dirname, '../../dist', ...path));
const startEngine = () => built('apps/inference/src/engine/engine-thread.js');

const sleep = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** Outside every promise, so that nobody catches it. */
const die = () =>
  process.nextTick(() => {
    throw new Error('The thread dies on purpose.');
  });

/** @param told called with each message that this thread sends */
function onMessage(told) {
  parentPort.postMessage = new Proxy(parentPort.postMessage, {
    apply(post, port, args) {
      post.apply(port, args);
      told(args[0]);
    },
  });
}

/** Whether this is the first thread of the test that asks; a file of this name records it. */
function isFirst(name) {
  const mark = join(workerData.cacheDir, name);
  if (existsSync(mark)) return false;
  mkdirSync(workerData.cacheDir, { recursive: true });
  writeFileSync(mark, '');
  return true;
}

/** Starts an engine thread with a fault after the second step of its first drawing. */
function breakEngineOnce(name, fault) {
  if (!existsSync(join(workerData.cacheDir, name)))
    onMessage(({ type, step }) => type === 'progress' && step >= 2 && isFirst(name) && fault());
  startEngine();
}

/** Calls `fault` after the second step of each drawing whose prompt has the word "killer". */
function crashOnKiller(fault) {
  const killers = new Set();
  parentPort.on('message', ({ type, id, request }) => {
    if (type === 'draw' && request.prompt.includes('killer')) killers.add(id);
  });
  onMessage(({ type, id, step }) => type === 'progress' && killers.has(id) && step >= 2 && fault());
}

/** @param act called at each call of a graph, with its arguments */
function onCalls(act) {
  const { ModelSession } = built('libs/diffusion/src/sessions/model-session.js');
  const { run } = ModelSession.prototype;
  ModelSession.prototype.run = async function observed(feeds) {
    act(feeds);
    return run.call(this, feeds);
  };
  startEngine();
}

module.exports = { breakEngineOnce, built, crashOnKiller, die, onCalls, onMessage, sleep, startEngine };
