/** Parts of the faults in `faulty-threads.cjs`: they start the threads of a worker, and see what these do. */
const { existsSync, mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const threads = require('node:worker_threads');

const { parentPort, workerData } = threads;
const built = (...path) => require(join(__dirname, '../../dist', ...path));
const startEngine = () => built('apps/inference/src/engine/engine-thread.js');
/** An engine's settings name its device; what a lane is given does not. */
const isEngine = workerData?.device !== undefined;
const longestMs = 20_000;

const sleep = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** Throws outside of every promise, so that nobody catches it. */
const die = () =>
  process.nextTick(() => {
    throw new Error('The thread dies on purpose.');
  });

/** Waits, at most for a minute, until there is a file of this path: nothing can end a hanging thread. */
function hangUntil(file) {
  for (let ms = 0; ms < 60_000 && !existsSync(file); ms += 100) sleep(100);
}

/** @param told of each message of this thread when it is sent */
function onMessage(told) {
  parentPort.postMessage = new Proxy(parentPort.postMessage, {
    apply(post, port, args) {
      post.apply(port, args);
      told(args[0]);
    },
  });
}

/** Whether this is the first thread of the test that asks; a file of this name notes it. */
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

/** Calls of the U-Net so far, and pictures that the lanes were asked to decode and have decoded; all threads share it. */
const counts = workerData?.counts ?? new Int32Array(new SharedArrayBuffer(12));
const [calls, asked, done] = [0, 1, 2];
const count = (what) => Atomics.add(counts, what, 1) >= 0 && Atomics.notify(counts, what);

/** Waits until one of them is as large. @throws Error if it does not become so */
function waitFor(what, enough) {
  for (let now = Atomics.load(counts, what); now < enough; now = Atomics.load(counts, what))
    if (Atomics.wait(counts, what, now, longestMs) === 'timed-out') throw new Error('The threads wait for each other.');
}

/** Waits inside a call of a lane until the U-Net was called three times beside it. */
const waitForCalls = () => waitFor(calls, Atomics.load(counts, calls) + 3);

/** What a command or a call is of, without the trials of a model, whose latents are 8 x 8. */
function partOf({ feeds }) {
  if (!feeds) return undefined;
  const [{ dims }] = Object.values(feeds);
  if (dims.length === 2) return 'textEncoder';
  if (dims[1] === 3) return 'upscaler';
  return dims[2] > 8 ? 'vaeDecoder' : undefined;
}

/** @param began, ended told of each call of a graph in this thread */
function onCalls(began, ended = () => undefined) {
  const { ModelSession } = built('libs/diffusion/src/model/model-session.js');
  const { run } = ModelSession.prototype;
  ModelSession.prototype.run = async function observed(feeds, output) {
    const part = partOf({ feeds });
    began(part, feeds);
    const result = await run.call(this, feeds, output);
    ended(part);
    return result;
  };
}

/** Starts an engine thread whose lanes have this entry, too. */
function startEngineWithLanes() {
  const { Worker } = threads;
  threads.Worker = class extends Worker {
    constructor(_file, options) {
      super(process.argv[1], { ...options, workerData: { cacheDir: workerData.cacheDir, counts } });
    }

    postMessage(command, moved) {
      if (partOf(command) === 'vaeDecoder') count(asked);
      super.postMessage(command, moved);
    }
  };
  startEngine();
}

/**
 * Starts a lane.
 * @param onCommand told of each command before it is carried out
 * @param onCall told of each call when it has begun
 */
function startLane(onCommand = () => undefined, onCall = () => undefined) {
  parentPort.on('message', (command) => onCommand(command, partOf(command)));
  onCalls(onCall, (part) => part === 'vaeDecoder' && count(done));
  built('apps/inference/src/engine/threads/session-thread.js');
}

/** An engine with lanes, whose fault is in the first picture that any lane decodes: the only graph with one input. */
const lanes = (name, fault) => () =>
  isEngine
    ? startEngineWithLanes()
    : startLane(({ type, feeds }) => {
        if (type === 'run' && Object.keys(feeds).length === 1 && isFirst(name)) fault();
      });

/** An engine on the processor with a second thread in place of lanes, as with CUDA. */
const besides =
  (onCommand, onCall, inEngine = () => undefined) =>
  () => {
    if (!isEngine) return startLane(onCommand, onCall);
    built('apps/inference/src/engine/threads/side-thread.js').SideThread.isFor = () => true;
    built('apps/inference/src/engine/threads/lanes.js').Lanes.of = () => undefined;
    onMessage(({ type }) => type === 'stepped' && count(calls));
    startEngineWithLanes();
    inEngine();
  };

module.exports = {
  besides,
  breakEngineOnce,
  built,
  counts,
  crashOnKiller,
  die,
  done,
  asked,
  hangUntil,
  isFirst,
  lanes,
  onCalls,
  onMessage,
  sleep,
  startEngine,
  waitFor,
  waitForCalls,
};
