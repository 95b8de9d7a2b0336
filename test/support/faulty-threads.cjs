const { appendFileSync, existsSync } = require('node:fs');
const { join } = require('node:path');
const { performance } = require('node:perf_hooks');
const { parentPort, workerData } = require('node:worker_threads');
const {
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
} = require('./engine-thread.cjs');

/**
 * Faults of a worker's threads, by name. Each function runs in an engine thread, and those of lanes in their threads
 * too; `faultyThread` of `inference.ts` makes the entries of these threads.
 */

const decoding = (act) => (_, part) => part === 'vaeDecoder' && act();
const cacheFile = (name) => join(workerData.cacheDir, name);

module.exports = {
  crashOnKiller,

  /** It dies in the middle of its first drawing; the next thread works. */
  dyingEngine: () => breakEngineOnce('died', die),

  /** It hangs for some seconds in the middle of its first drawing. */
  hangingEngine: () =>
    breakEngineOnce('hung', () => {
      sleep(6_000);
      process.exit();
    }),

  /** It ends whenever it draws a prompt with the word "killer". */
  killer() {
    crashOnKiller(die);
    startEngine();
  },

  /**
   * Its callers give up in the moment in which it says something: a drawing of the prompt "until step 5" at that step,
   * one of "until a picture" at its first picture. From the main thread the word would come some steps later.
   */
  givingUp() {
    const commands = new Map();
    parentPort.on('message', (command) => commands.set(command.id, command));
    const isEnough = { 'until step 5': ({ step }) => step >= 5, 'until a picture': ({ type }) => type === 'picture' };
    onMessage((message) => {
      const { request, cancel } = commands.get(message.id) ?? {};
      if (isEnough[request?.prompt]?.(message)) Atomics.store(new Int32Array(cancel), 0, 1);
    });
    startEngine();
  },

  /** Its U-Nets take at most three rows, as a graph does that was exported for a fixed number of pictures. */
  fewRows() {
    onCalls((_, { timestep, sample }) => {
      if (timestep && sample.dims[0] > 3) throw new Error('Reshape: the input tensor cannot be reshaped.');
    });
    startEngine();
  },

  /** The tenth step of all multistep solvers runs out of memory when the solver has noted the prediction. */
  failingScheduler() {
    const { DpmSolverMultistepScheduler } = built('libs/diffusion/src/schedulers/dpm-solver-multistep-scheduler.js');
    const { step } = DpmSolverMultistepScheduler.prototype;
    let steps = 0;
    DpmSolverMultistepScheduler.prototype.step = function failOnce(...values) {
      const moved = step.apply(this, values);
      if (++steps === 10) throw new RangeError('Array buffer allocation failed');
      return moved;
    };
    startEngine();
  },

  /** A GPU whose context has died: it breaks every drawing, except those whose prompt is "sound". */
  deadGpu() {
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
  },

  /** It chooses a GPU, and ends with its first drawing; the next thread that asks for that GPU has none. */
  vanishingGpu() {
    if (workerData.device !== 'auto')
      return parentPort.postMessage({ type: 'unavailable', reason: `there is no ${workerData.device}` });
    parentPort.postMessage({ type: 'ready', device: 'cuda:0', memoryBytes: 2 ** 30 });
    parentPort.on('message', () => process.exit(1));
  },

  dyingLane: lanes('lane-died', () => {
    throw new Error('The lane dies on purpose.');
  }),
  hangingLane: lanes('lane-hung', () => sleep(6_000)),

  /** The second thread writes down what it is asked for. */
  side: besides(({ type }, part) => appendFileSync(cacheFile('side-thread'), `${part ?? type}\n`)),

  /** The second thread decodes and enlarges nothing before the U-Net was called beside it. */
  patientSide: besides(undefined, (part) => (part === 'vaeDecoder' || part === 'upscaler') && waitForCalls()),

  /** After the trial of a model and the first text, it encodes nothing before that. */
  patientEncoderSide: (() => {
    let encoded = 0;
    return besides(undefined, (part) => part === 'textEncoder' && ++encoded > 2 && waitForCalls());
  })(),

  /** The second thread writes down what it decodes, and its first decoding lasts until a file says that it was seen. */
  slowDecoderSide: besides(undefined, (part) => {
    if (part !== 'vaeDecoder') return;
    const isFirstOne = !existsSync(cacheFile('side-thread'));
    appendFileSync(cacheFile('side-thread'), `${part}\n`);
    if (isFirstOne) hangUntil(cacheFile('side-thread-goes-on'));
  }),

  /**
   * Each call of the U-Net lasts until the second thread has decoded what it was asked for when the call began, and
   * then four times as long as until then. The file `decodings-beside` has their number for each call.
   */
  longCallsSide: besides(undefined, undefined, () => {
    const { Renderer } = built('libs/diffusion/src/pipelines/renderer.js');
    const { step } = Renderer.prototype;
    let [startedAt, before] = [0, 0];
    // What the engine measures is more than the call itself.
    Renderer.prototype.step = function begin(trajectories) {
      [startedAt, before] = [performance.now(), Atomics.load(counts, done)];
      return step.call(this, trajectories);
    };
    onCalls((_, { sample }) => {
      if (!sample || sample.dims[2] <= 8) return;
      const wanted = Atomics.load(counts, asked);
      waitFor(done, wanted);
      appendFileSync(cacheFile('decodings-beside'), `${wanted - before}\n`);
      if (wanted > before) sleep(3 * (performance.now() - startedAt));
    });
  }),

  /**
   * The second thread has no memory for the first two pictures that are at least 128 pixels wide, and for none of 192;
   * it loses its GPU when it decodes one of 256. It has none for four texts of a prompt either.
   */
  failingSide: (() => {
    let left = 2;
    return besides(undefined, (_, feeds) => {
      const [{ dims }] = Object.values(feeds);
      if (dims[3] === 32) throw new Error('CUDA failure 700: an illegal memory access was encountered');
      const isLongPrompt = dims.length === 2 && dims[0] >= 4;
      if (isLongPrompt || dims[3] === 24 || (dims[3] === 16 && left-- > 0))
        throw new Error('Failed to allocate memory for requested buffer of size 536870912');
    });
  })(),

  /** The second thread dies when it decodes the first picture. */
  dyingSide: besides(
    decoding(() => {
      if (isFirst('dying-side-thread')) throw new Error('The second thread dies on purpose.');
    }),
  ),

  /** The second thread hangs when it decodes the first picture, until a file says that this was seen. */
  hangingSide: besides(
    decoding(() => isFirst('hanging-side-thread') && hangUntil(cacheFile('hanging-side-thread-ends'))),
  ),
};
