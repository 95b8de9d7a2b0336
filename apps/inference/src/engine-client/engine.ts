import { join } from 'node:path';
import { SHARE_ENV, Worker } from 'node:worker_threads';
import type { Device } from '@app/diffusion';
import { DeviceUnavailableError } from '../device/device';
import { TaskAbortedError, EngineLostError, failureError } from './task-errors';
import type {
  DrawingProgress,
  DrawingStarted,
  DrawTask,
  EngineCommand,
  EngineMessage,
  EngineSettings,
  EngineStep,
  ModelLoaded,
  RgbImage,
} from '../engine/engine-protocol';
import { type EngineState, EngineStateReader } from './engine-state';
import { SilenceWatch } from './silence-watch';

/**
 * Drawings in a row that break on a GPU, with no call of the denoiser between them, after which the GPU itself counts
 * as lost: after some errors every later call of the process fails. Fewer than the tries of a task, so that no task
 * fails for it.
 */
const mostBroken = 4;

/** Pictures to draw, and callbacks. */
export interface DrawOptions extends Pick<DrawTask, 'owner' | 'model' | 'request' | 'upscaler' | 'safety'> {
  /** The Fine-Tunes of the model; by default none. */
  adapters?: DrawTask['adapters'];
  onStarted?: (started: DrawingStarted) => void;
  onProgress?: (progress: DrawingProgress) => void;
  /** Called once for each picture, in order. */
  onPicture: (index: number, picture: RgbImage, upscaled: boolean, flagged?: boolean) => void;
  signal?: AbortSignal;
}

export interface EngineOptions {
  settings: EngineSettings;
  /** Compiled entry of the thread; tests name the one in `dist`. */
  threadFile?: string;
  onNote?: (text: string) => void;
  onLoaded?: (loaded: ModelLoaded) => void;
  onReleased?: (key: string) => void;
  onStep?: (step: EngineStep) => void;
  onCrash?: (error: Error) => void;
  /** An engine that draws and is silent for this many milliseconds is considered hung. */
  stallMs: number;
  /** Called when the thread hangs inside the runtime, or its device is gone: only the end of the process helps. */
  onStall?: (error: Error) => void;
}

interface Pending {
  options: DrawOptions;
  isBegun?: boolean;
  resolve: (result: { computeMs: number }) => void;
  reject: (error: Error) => void;
}

/** One device's engine, seen from the main thread: draws requests side by side, and restarts a thread that ended. */
export class Engine {
  /** The device that the first thread chose. A later one must choose the same, because tasks are claimed for it. */
  device?: Device;
  private thread?: Promise<Worker>;
  private readonly pending = new Map<number, Pending>();
  private readonly reader = new EngineStateReader();
  private nextId = 1;
  private reservedBytes = 0;
  private onReserved: () => void = () => undefined;
  /** No thread is started any more: it is closed, or its device is not there. */
  private isOver = false;
  /** Why it will never draw again. */
  private stall?: EngineLostError;
  /** Tasks that broke since the last call of the denoiser. */
  private broken = 0;
  /** It is watched while it has something to draw. */
  private readonly watch: SilenceWatch;

  constructor(private readonly options: EngineOptions) {
    this.watch = new SilenceWatch(options.stallMs, (silentMs) => {
      this.giveUp(`The engine has said nothing for ${Math.round(silentMs / 1000)} s.`);
    });
  }

  /** Whether the thread hangs or its device is gone: it will never draw again. */
  get isStalled(): boolean {
    return this.stall !== undefined;
  }

  get loadedKeys(): ReadonlySet<string> {
    return this.reader.loadedKeys;
  }

  get state(): EngineState {
    return this.reader.state(this.pending.size);
  }

  /**
   * Leaves this many bytes of its memory to a process that trains, also after its thread has started again. Resolves
   * when they are free, or when all current drawings have ended.
   */
  async reserve(bytes: number): Promise<void> {
    this.reservedBytes = bytes;
    const worker = await this.thread?.catch(() => undefined);
    if (!worker || !this.thread) return;
    await new Promise<void>((resolve) => {
      this.onReserved = resolve;
      worker.postMessage({ type: 'reserve', bytes } satisfies EngineCommand);
    });
  }

  /** Starts the thread, and returns its device. @throws DeviceUnavailableError if that cannot be used */
  async start(): Promise<Device> {
    await this.running();
    return this.device!;
  }

  /**
   * @returns milliseconds of drawing, without loading the model
   * @throws TaskAbortedError within a step of `signal`
   * @throws TaskRefusedError if the model, its weights or the request are at fault
   * @throws EngineLostError if its thread ends or hangs meanwhile
   * @throws EngineBrokenError for everything else
   */
  async draw(options: DrawOptions): Promise<{ computeMs: number }> {
    // The process ends, and it is not this task's fault.
    if (this.stall) throw new TaskAbortedError(this.stall.message);
    const { owner, model, adapters = [], request, upscaler, safety, signal } = options;
    const id = this.nextId++;
    const cancel = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    const afterwards = { ...(upscaler && { upscaler }), ...(safety && { safety }) };
    const task = { id, owner, model, adapters, request, cancel, ...afterwards };
    const stop = (): void => void Atomics.store(new Int32Array(cancel), 0, 1);
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    try {
      return await new Promise((resolve, reject) => {
        this.pending.set(id, { options, resolve, reject });
        this.watch.start();
        this.running().then((worker) => worker.postMessage({ type: 'draw', ...task } satisfies EngineCommand), reject);
      });
    } finally {
      this.pending.delete(id);
      if (this.pending.size === 0) this.watch.stop();
      signal?.removeEventListener('abort', stop);
    }
  }

  /**
   * Releases every session and ends the thread. If it does not end within `deadlineMs`, it is left until the process
   * ends: terminating it while it is inside the runtime would crash the process.
   */
  async close(deadlineMs = 5_000): Promise<void> {
    this.isOver = true;
    const worker = await this.thread?.catch(() => undefined);
    if (!worker) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, deadlineMs);
      worker.once('exit', () => (clearTimeout(timer), resolve()));
      worker.postMessage({ type: 'close' } satisfies EngineCommand);
    });
  }

  /** It will not draw any more. @param unstarted whether tasks that have not begun are given back, or `at fault` too */
  private giveUp(why: string, unstarted: 'at fault' | 'given back' = 'at fault'): void {
    if (this.stall) return;
    this.stall = new EngineLostError(why);
    this.options.onStall?.(this.stall);
    for (const { isBegun, reject } of this.pending.values())
      reject(unstarted === 'given back' && !isBegun ? new TaskAbortedError(why) : this.stall);
  }

  private loseDevice(reason: string): void {
    this.giveUp(`The device ${this.device} cannot be used any more: ${reason}`, 'given back');
  }

  private running(): Promise<Worker> {
    if (this.stall) return Promise.reject(this.stall);
    if (this.isOver && !this.thread) return Promise.reject(new EngineLostError('The engine is closed.'));
    return (this.thread ??= this.startThread());
  }

  private startThread(): Promise<Worker> {
    const { threadFile, onCrash } = this.options;
    const settings = { ...this.options.settings, ...(this.device && { device: this.device }) };
    return new Promise((resolve, reject) => {
      const worker = new Worker(threadFile ?? join(__dirname, '../engine/engine-thread.js'), {
        workerData: settings,
        // ONNX Runtime obeys the environment of the process, and the library of ours sets it before it is loaded.
        env: SHARE_ENV,
      });
      let cause: unknown;
      worker.on('message', (message: EngineMessage) => {
        this.reader.note(message);
        if (message.type === 'ready') {
          this.device = message.device;
          if (this.reservedBytes > 0)
            worker.postMessage({ type: 'reserve', bytes: this.reservedBytes } satisfies EngineCommand);
          resolve(worker);
        } else if (message.type === 'unavailable') {
          if (this.device) this.loseDevice(message.reason);
          else this.isOver = true;
          reject(new DeviceUnavailableError(message.reason));
        } else this.handle(message);
      });
      worker.on('error', (error) => (cause = error));
      worker.once('exit', (code) => {
        this.thread = undefined;
        this.reader.clear();
        this.onReserved();
        const error = new EngineLostError(`The engine's thread ended with code ${code}.`, { cause });
        reject(error);
        for (const pending of this.pending.values()) pending.reject(error);
        if (!this.isOver && !this.stall) onCrash?.(error);
      });
    });
  }

  private handle(message: Exclude<EngineMessage, { type: 'ready' | 'unavailable' }>): void {
    const { onNote, onLoaded, onReleased, onStep } = this.options;
    this.watch.reset();
    if (message.type === 'note') return onNote?.(message.text);
    if (message.type === 'loaded') return onLoaded?.(message);
    if (message.type === 'released') return onReleased?.(message.key);
    if (message.type === 'reserved') return message.bytes === this.reservedBytes ? this.onReserved() : undefined;
    if (message.type === 'stepped') {
      this.broken = 0;
      return onStep?.(message);
    }
    const pending = this.pending.get(message.id);
    // A task that is over may still have messages on their way.
    if (!pending) return;
    const { options } = pending;
    if (message.type === 'started') {
      pending.isBegun = true;
      options.onStarted?.(message);
    } else if (message.type === 'progress') options.onProgress?.(message);
    else if (message.type === 'picture')
      options.onPicture(message.index, message.picture, message.upscaled, message.flagged);
    else if (message.type === 'done') pending.resolve({ computeMs: message.computeMs });
    else if (message.type === 'failed') {
      pending.reject(failureError(message));
      // A task that needs too much memory says nothing about the device, and the processor has no state to lose.
      if (message.failure !== 'broken' || message.outOfMemory || this.device === 'cpu') return;
      if (++this.broken >= mostBroken) this.loseDevice(message.message);
    }
  }
}
