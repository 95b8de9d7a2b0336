const { existsSync, mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const threads = require('node:worker_threads');

/** Starts a real engine thread whose lanes run `laneFile`, which is told its cache folder. */
exports.startEngineWith = function startEngineWith(laneFile) {
  const { cacheDir } = threads.workerData;
  const { Worker } = threads;
  threads.Worker = class extends Worker {
    constructor(_file, options) {
      super(laneFile, { ...options, workerData: { cacheDir } });
    }
  };
  require(join(__dirname, '../../dist/apps/inference/src/engine/engine-thread.js'));
};

/** Starts a real lane with a fault in the first picture that any lane decodes. A file of this name notes that it happened. */
exports.breakLaneOnce = function breakLaneOnce(name, fault) {
  const { parentPort, workerData } = threads;
  const mark = join(workerData.cacheDir, name);
  parentPort.on('message', ({ type, feeds }) => {
    // Of the graphs of a lane, the decoder is the one with a single input.
    if (type !== 'run' || Object.keys(feeds).length !== 1 || existsSync(mark)) return;
    mkdirSync(workerData.cacheDir, { recursive: true });
    writeFileSync(mark, '');
    fault();
  });
  require(join(__dirname, '../../dist/apps/inference/src/engine/lane-thread.js'));
};
