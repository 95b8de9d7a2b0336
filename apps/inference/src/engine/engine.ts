import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Device } from '@app/diffusion';
import { DeviceUnavailableError } from './device';
import { DrawingAbortedError, EngineLostError, failureError } from './engine-errors';
import type {
  DrawingProgress,
  DrawingStarted,
  DrawRequest,
  EngineCommand,
  EngineMessage,
  EngineSettings,
  EngineStep,
  ModelLoaded,
  DrawnModel,
  RgbPicture,
  UpscalerSource,
} from './engine-protocol';
import type { EngineState } from './engine-state';
import { EngineStateReader } from './engine-state';

const longestWatchIntervalMs = 10_000;

/** Pictures to draw, the weights, and callbacks. */
export interface Drawing {
  /** Whose it is: owners have equal shares of the engine's time. */
  owner: string;
  model: DrawnModel;
  request: DrawRequest;
  upscaler?: UpscalerSource;
  onStarted?: (started: DrawingStarted) => void;
  onProgress?: (progress: DrawingProgress) => void;
  /** Called once for each picture, in order. */
  onPicture: (index: number, picture: RgbPicture, upscaled: boolean) => void;
  signal?: AbortSignal;
}

export interface EngineOptions {
  settings: EngineSettings;
  /** Compiled entry of the thread; tests name the one in `dist`. */
  threadFile?: string;
  onLoaded?: (loaded: ModelLoaded) => void;
  onReleased?: (key: string) => void;
  onStep?: (step: EngineStep) => void;
  onCrash?: (error: Error) => void;
  /** An engine that draws and is silent for this many milliseconds is considered hung. */
  stallMs: number;
  /** Called when the thread hangs inside the runtime, where only the end of the process can end it. */
  onStall?: (error: Error) => void;
}

interface RunningThread {
  worker: Worker;
  device: Device;
}

interface Pending {
  drawing: Drawing;
  resolve: (result: { computeMs: number }) => void;
  reject: (error: Error) => void;
}

/** One device's engine, as seen from the main thread. Draws any number of requests side by side; a thread that ended is restarted. */
export class Engine {
  private thread?: Promise<RunningThread>;
  private readonly pending = new Map<number, Pending>();
  private readonly reader = new EngineStateReader();
  private nextId = 1;
  private closing = false;
  private reportedAt = 0;
  /** The time of the last report when a check found that it was too long ago. */
  private silentSince?: number;
  private stall?: EngineLostError;
  private watch?: NodeJS.Timeout;

  constructor(private readonly options: EngineOptions) {}

  /** Whether the thread hangs: it will never draw again. */
  get isStalled(): boolean {
    return this.stall !== undefined;
  }

  /** Keys of the models that it has loaded, as far as it has said. */
  get loadedKeys(): ReadonlySet<string> {
    return this.reader.loadedKeys;
  }

  /** What it has loaded and what it is doing, as far as it has said. */
  get state(): EngineState {
    return this.reader.state(this.pending.size);
  }

  /** Starts the thread, and returns its device. @throws DeviceUnavailableError if that cannot be used */
  async start(): Promise<Device> {
    return (await this.running()).device;
  }

  /**
   * @returns milliseconds of drawing, without loading the model
   * @throws DrawingAbortedError within a step of `signal`
   * @throws DrawingRefusedError if the model, its weights or the request are at fault
   * @throws EngineLostError if its thread ends or hangs meanwhile
   * @throws EngineBrokenError for everything else
   */
  async draw(drawing: Drawing): Promise<{ computeMs: number }> {
    // The process ends, and it is not this drawing's fault.
    if (this.stall) throw new DrawingAbortedError(this.stall.message);
    const { owner, model, request, upscaler, signal } = drawing;
    const id = this.nextId++;
    const cancel = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    const stop = (): void => void Atomics.store(new Int32Array(cancel), 0, 1);
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    const about = { id, owner, model, request, ...(upscaler && { upscaler }) };
    const command: EngineCommand = { type: 'draw', ...about, cancel };
    try {
      return await new Promise((resolve, reject) => {
        this.addPending(id, { drawing, resolve, reject });
        this.running().then(({ worker }) => worker.postMessage(command), reject);
      });
    } finally {
      this.removePending(id);
      signal?.removeEventListener('abort', stop);
    }
  }

  /**
   * Releases every session and ends the thread. If it does not end within `deadlineMs`, it is left until the process ends:
   * terminating it while it is inside the runtime would crash the process.
   */
  async close(deadlineMs = 5_000): Promise<void> {
    this.closing = true;
    const running = await this.thread?.catch(() => undefined);
    if (!running) return;
    const { worker } = running;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, deadlineMs);
      worker.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
      worker.postMessage({ type: 'close' } satisfies EngineCommand);
    });
  }

  /** The engine is watched while it has something to draw. */
  private addPending(id: number, pending: Pending): void {
    if (this.pending.size === 0) this.reportedAt = performance.now();
    this.pending.set(id, pending);
    const intervalMs = Math.min(this.options.stallMs / 4, longestWatchIntervalMs);
    this.watch ??= setInterval(() => this.checkForStall(), intervalMs);
  }

  private removePending(id: number): void {
    this.pending.delete(id);
    if (this.pending.size > 0) return;
    clearInterval(this.watch);
    this.watch = undefined;
  }

  private checkForStall(): void {
    const silentMs = performance.now() - this.reportedAt;
    if (this.stall || silentMs < this.options.stallMs) return;
    // Where this whole process stood still, the thread's reports are read after this timer: the next check tells.
    if (this.silentSince !== this.reportedAt) {
      this.silentSince = this.reportedAt;
      return;
    }
    this.stall = new EngineLostError(`The engine has said nothing for ${Math.round(silentMs / 1000)} s.`);
    this.options.onStall?.(this.stall);
    this.rejectAll(this.stall);
  }

  private rejectAll(error: Error): void {
    for (const { reject } of this.pending.values()) reject(error);
  }

  private running(): Promise<RunningThread> {
    if (this.stall) return Promise.reject(this.stall);
    if (this.closing && !this.thread) return Promise.reject(new EngineLostError('The engine is closed.'));
    return (this.thread ??= this.startThread());
  }

  private startThread(): Promise<RunningThread> {
    const { settings, threadFile, onCrash } = this.options;
    return new Promise((resolve, reject) => {
      const worker = new Worker(threadFile ?? join(__dirname, 'engine-thread.js'), { workerData: settings });
      let cause: unknown;
      worker.on('message', (report: EngineMessage) => {
        this.reader.note(report);
        if (report.type === 'ready') resolve({ worker, device: report.device });
        else if (report.type === 'unavailable') {
          this.closing = true;
          reject(new DeviceUnavailableError(report.reason));
        } else this.handleReport(report);
      });
      worker.on('error', (error) => (cause = error));
      worker.once('exit', (code) => {
        this.thread = undefined;
        this.reader.clear();
        const error = new EngineLostError(`The engine's thread ended with code ${code}.`, { cause });
        reject(error);
        this.rejectAll(error);
        if (!this.closing) onCrash?.(error);
      });
    });
  }

  private handleReport(report: Exclude<EngineMessage, { type: 'ready' | 'unavailable' }>): void {
    this.reportedAt = performance.now();
    if (report.type === 'loaded') return this.options.onLoaded?.(report);
    if (report.type === 'released') return this.options.onReleased?.(report.key);
    if (report.type === 'stepped') return this.options.onStep?.(report);
    const pending = this.pending.get(report.id);
    // A drawing that stalled may still say something.
    if (!pending) return;
    const { drawing } = pending;
    if (report.type === 'started') drawing.onStarted?.(report);
    else if (report.type === 'progress') drawing.onProgress?.(report);
    else if (report.type === 'picture') drawing.onPicture(report.index, report.picture, report.upscaled);
    else if (report.type === 'done') pending.resolve({ computeMs: report.computeMs });
    else if (report.type === 'failed') pending.reject(failureError(report));
  }
}
