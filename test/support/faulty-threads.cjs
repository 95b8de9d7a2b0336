const { parentPort, workerData } = require('node:worker_threads');
const {
  breakEngineOnce,
  built,
  crashOnKiller,
  die,
  onCalls,
  onMessage,
  sleep,
  startEngine,
} = require('./engine-thread.cjs');

const outOfMemory = 'Failed to allocate memory for requested buffer of size 536870912';

/**
 * Faults of an engine thread, by name. Each function runs in such a thread; `faultyThread` of `inference.ts` makes
 * their entries.
 */
module.exports = {
  crashOnKiller,

  /** Dies in its first drawing; the next thread works. */
  dyingEngine: () => breakEngineOnce('died', die),

  /** Hangs for some seconds in its first drawing. */
  hangingEngine: () =>
    breakEngineOnce('hung', () => {
      sleep(6_000);
      process.exit();
    }),

  /** Ends whenever it draws a prompt with the word "killer". */
  killer() {
    crashOnKiller(die);
    startEngine();
  },

  /**
   * Callers cancel at the very message: the prompt "until step 5" at that step, "until a picture" at the first picture.
   * The main thread could cancel only some steps later.
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

  /** Every call with a picture of the prompt "faulty" fails. */
  faultyPicture() {
    const { Pipeline } = built('libs/diffusion/src/pipelines/pipeline.js');
    const { prepare } = Pipeline.prototype;
    Pipeline.prototype.prepare = async function prepareFaulty(request, texts) {
      const trajectories = await prepare.call(this, request, texts);
      if (request.prompt === 'faulty')
        for (const each of trajectories)
          each.gather = () => {
            throw new Error('It fails on purpose.');
          };
      return trajectories;
    };
    startEngine();
  },

  /** Denoisers lack memory for more than two rows, and for any picture 192 pixels wide. */
  smallMemory: () =>
    onCalls(({ timestep, sample }) => {
      if (timestep && (sample.dims[0] > 2 || sample.dims[3] === 24)) throw new Error(outOfMemory);
    }),

  /** The decoder lacks memory for the first picture 128 pixels wide, and for any 192 pixels wide. */
  smallDecoder() {
    let left = 1;
    onCalls(({ latent_sample: latents }) => {
      const width = latents?.dims[3];
      if (width === 24 || (width === 16 && left-- > 0)) throw new Error(outOfMemory);
    });
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

  /** A GPU whose context has died: it fails every drawing, except those whose prompt is "sound". */
  deadGpu() {
    parentPort.postMessage({ type: 'ready', device: 'cuda:0', memoryBytes: 2 ** 30 });
    parentPort.on('message', ({ type, id, request }) => {
      if (type === 'close') return parentPort.close();
      if (request.prompt === 'waits') return;
      if (request.prompt === 'begins')
        return parentPort.postMessage({ type: 'started', id, promptChunks: 1, scheduler: '' });
      if (request.prompt === 'sound') {
        parentPort.postMessage({ type: 'stepped', drawings: 1, pictures: 1, rows: 2, stepMs: 1 });
        return parentPort.postMessage({ type: 'done', id, computeMs: 1 });
      }
      const message = 'CUDA failure 700: an illegal memory access was encountered';
      const forMemory = request.prompt === 'large' && { outOfMemory: true };
      parentPort.postMessage({ type: 'failed', id, failure: 'broken', message, ...forMemory });
    });
  },

  /** A GPU that ends with its thread's first drawing; the next thread finds none. */
  vanishingGpu() {
    if (workerData.device !== 'auto')
      return parentPort.postMessage({ type: 'unavailable', reason: `there is no ${workerData.device}` });
    parentPort.postMessage({ type: 'ready', device: 'cuda:0', memoryBytes: 2 ** 30 });
    parentPort.on('message', () => process.exit(1));
  },
};
