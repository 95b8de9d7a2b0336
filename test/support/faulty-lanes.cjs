const { appendFileSync, existsSync, mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { performance } = require('node:perf_hooks');
const threads = require('node:worker_threads');

/** Starts a real engine thread whose lanes run `laneFile`, which is told its cache folder. */
exports.startEngineWith = function startEngineWith(laneFile) {
  const { cacheDir } = threads.workerData;
  const { Worker } = threads;
  const { calls, decodings } = exports;
  threads.Worker = class extends Worker {
    constructor(_file, options) {
      super(laneFile, { ...options, workerData: { cacheDir, calls, decodings } });
    }

    postMessage(command, moved) {
      if (partOf(command) === 'vaeDecoder') Atomics.add(decodings, asked, 1);
      super.postMessage(command, moved);
    }
  };
  require(join(__dirname, '../../dist/apps/inference/src/engine/engine-thread.js'));
};

/**
 * Starts a real engine thread on the processor that has a second thread in place of lanes, as with CUDA. It runs
 * `laneFile`.
 */
exports.startEngineBesideWith = function startEngineBesideWith(laneFile) {
  const { SideThread } = require(join(__dirname, '../../dist/apps/inference/src/engine/threads/side-thread.js'));
  const { Lanes } = require(join(__dirname, '../../dist/apps/inference/src/engine/threads/lanes.js'));
  SideThread.isFor = () => true;
  Lanes.of = () => undefined;
  const { parentPort } = threads;
  parentPort.postMessage = new Proxy(parentPort.postMessage, {
    apply(post, port, args) {
      post.apply(port, args);
      if (args[0].type !== 'stepped') return;
      Atomics.add(exports.calls, 0, 1);
      Atomics.notify(exports.calls, 0);
    },
  });
  exports.startEngineWith(laneFile);
};

/** Calls of the U-Net so far; the lanes of an engine have it in their data. */
exports.calls = new Int32Array(new SharedArrayBuffer(4));

/** Pictures that the lanes were asked to decode so far, and that they have decoded; they have it in their data. */
exports.decodings = new Int32Array(new SharedArrayBuffer(8));
const [asked, done] = [0, 1];

const longestMs = 20_000;

/** Waits inside a call of a lane until the U-Net was called so often beside it. @throws Error if it is not */
exports.waitForCalls = function waitForCalls(callsBeside) {
  const { calls } = threads.workerData;
  const enough = Atomics.load(calls, 0) + callsBeside;
  for (let made = Atomics.load(calls, 0); made < enough; made = Atomics.load(calls, 0))
    if (Atomics.wait(calls, 0, made, longestMs) === 'timed-out') throw new Error('The U-Net waits for this thread.');
};

/**
 * Lets each call of the U-Net in this thread last until the lanes have decoded what they were asked for when it began,
 * and then four times as long as until then. The file `decodings-beside` has their number for each call.
 */
exports.lengthenCalls = function lengthenCalls(cacheDir) {
  const { decodings } = exports;
  const { Renderer } = require(join(__dirname, '../../dist/libs/diffusion/src/pipelines/renderer.js'));
  const { step } = Renderer.prototype;
  let [startedAt, before] = [0, 0];
  // What the engine measures is more than the call itself.
  Renderer.prototype.step = function begin(trajectories) {
    [startedAt, before] = [performance.now(), Atomics.load(decodings, done)];
    return step.call(this, trajectories);
  };
  onCalls((_, { sample }) => {
    if (!sample || sample.dims[2] <= 8) return;
    const wanted = Atomics.load(decodings, asked);
    for (let made = before; made < wanted; made = Atomics.load(decodings, done))
      if (Atomics.wait(decodings, done, made, longestMs) === 'timed-out') throw new Error('Nothing is decoded.');
    appendFileSync(join(cacheDir, 'decodings-beside'), `${wanted - before}\n`);
    if (wanted > before)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * (performance.now() - startedAt));
  });
};

/** Waits, at most for a minute, until there is a file of this path: nothing can end a hanging thread. */
exports.hangUntil = function hangUntil(file) {
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  for (let ms = 0; ms < 60_000 && !existsSync(file); ms += 100) Atomics.wait(nothing, 0, 0, 100);
};

/**
 * Starts a real lane.
 * @param onCommand told of each command before it is carried out; `part` is what a call is of, without the trials of a
 * model
 * @param onCall told of each call when it has begun
 */
exports.startLane = function startLane(onCommand, onCall = () => undefined) {
  threads.parentPort.on('message', (command) => onCommand(command, partOf(command)));
  const { decodings } = threads.workerData;
  onCalls(onCall, (part) => {
    if (part !== 'vaeDecoder') return;
    Atomics.add(decodings, done, 1);
    Atomics.notify(decodings, done);
  });
  require(join(__dirname, '../../dist/apps/inference/src/engine/threads/session-thread.js'));
};

/** @param began, ended told of each call of a graph in this thread */
function onCalls(began, ended = () => undefined) {
  const { ModelSession } = require(join(__dirname, '../../dist/libs/diffusion/src/model/model-session.js'));
  const { run } = ModelSession.prototype;
  ModelSession.prototype.run = async function observed(feeds, output) {
    const part = partOf({ type: 'run', feeds });
    began(part, feeds);
    const result = await run.call(this, feeds, output);
    ended(part);
    return result;
  };
}

function partOf({ type, feeds }) {
  if (type !== 'run') return undefined;
  const [{ dims }] = Object.values(feeds);
  if (dims.length === 2) return 'textEncoder';
  if (dims[1] === 3) return 'upscaler';
  // A model is tried with latents of 8 x 8.
  return dims[2] > 8 ? 'vaeDecoder' : undefined;
}

/** Of the graphs of a lane, the decoder is the one with a single input. */
const isDecoder = ({ type, feeds }) => type === 'run' && Object.keys(feeds).length === 1;

/** For the second thread of an engine, which has other graphs with one input, and tries a model when it loads it. */
exports.decodesPicture = (_, part) => part === 'vaeDecoder';

/**
 * Starts a real lane with a fault in the first picture that any lane decodes. A file of this name notes that it
 * happened.
 * @param fault told the path of that file
 */
exports.breakLaneOnce = function breakLaneOnce(name, fault, decodes = isDecoder) {
  const { cacheDir } = threads.workerData;
  const mark = join(cacheDir, name);
  exports.startLane((command, part) => {
    if (!decodes(command, part) || existsSync(mark)) return;
    mkdirSync(cacheDir, { recursive: true });
    writeFileSync(mark, '');
    fault(mark);
  });
};
