const { existsSync, mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const threads = require('node:worker_threads');

/** Starts a real engine thread whose lanes run `laneFile`, which is told its cache folder. */
exports.startEngineWith = function startEngineWith(laneFile) {
  const { cacheDir } = threads.workerData;
  const { Worker } = threads;
  const { calls } = exports;
  threads.Worker = class extends Worker {
    constructor(_file, options) {
      super(laneFile, { ...options, workerData: { cacheDir, calls } });
    }
  };
  require(join(__dirname, '../../dist/apps/inference/src/engine/engine-thread.js'));
};

/**
 * Starts a real engine thread on the processor that has a second thread in place of lanes, as on a GPU. It runs
 * `laneFile`.
 */
exports.startEngineBesideWith = function startEngineBesideWith(laneFile) {
  const { SideThread } = require(join(__dirname, '../../dist/apps/inference/src/engine/side-thread.js'));
  const { Lanes } = require(join(__dirname, '../../dist/apps/inference/src/engine/lanes.js'));
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

/**
 * Starts a real lane.
 * @param onCommand told of each command before it is carried out; `part` is what a call is of, without the trials of a
 * model
 */
exports.startLane = function startLane(onCommand) {
  threads.parentPort.on('message', (command) => onCommand(command, partOf(command)));
  require(join(__dirname, '../../dist/apps/inference/src/engine/lane-thread.js'));
};

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
