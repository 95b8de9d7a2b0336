import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Device } from './device';
import type {
  DrawingProgress,
  DrawingStarted,
  DrawRequest,
  EngineCommand,
  EngineReport,
  EngineSettings,
  ModelLoaded,
  ModelSource,
  RgbPicture,
  UpscalerSource,
} from './engine-protocol';

const longestWatchIntervalMs = 10_000;

/** Pictures to draw, the weights, and callbacks. */
export interface Drawing {
  model: ModelSource;
  request: DrawRequest;
  upscaler?: UpscalerSource;
  onStarted?: (started: DrawingStarted) => void;
  onProgress?: (progress: DrawingProgress) => void;
  /** Called once for each picture, in order. */
  onPicture: (index: number, picture: RgbPicture, upscaled: boolean) => void;
  signal?: AbortSignal;
}

/** The drawing was aborted by its signal. */
export class DrawingAbortedError extends Error {
  override readonly name = 'DrawingAbortedError';
}

/** The drawing would fail every time; the message is one plain sentence for the caller. */
export class DrawingRefusedError extends Error {
  override readonly name = 'DrawingRefusedError';
}

/** The engine broke or its thread ended; a retry of the drawing may succeed. */
export class EngineBrokenError extends Error {
  override readonly name = 'EngineBrokenError';
}

/** How to start an engine's thread, and callbacks for its models and its end. */
export interface EngineOptions extends EngineSettings {
  /** Compiled entry of the thread; tests name the one in `dist`. */
  threadFile?: string;
  onLoaded?: (loaded: ModelLoaded) => void;
  onCrash?: (error: Error) => void;
  /** A drawing that is silent for this many milliseconds is considered hung. */
  stallMs: number;
  /** Called when the thread hangs inside the runtime, where only the end of the process can end it. */
  onStall?: (error: Error) => void;
}

interface RunningThread {
  worker: Worker;
  device: Device;
  fallback?: string;
}

interface Pending {
  id: number;
  drawing: Drawing;
  resolve: (result: { computeMs: number }) => void;
  reject: (error: Error) => void;
}

/** One device's engine, as seen from the main thread. Draws one request at a time; a thread that ended is restarted. */
export class Engine {
  private thread?: Promise<RunningThread>;
  private pending?: Pending;
  private nextId = 1;
  private closing = false;
  private reportedAt = 0;
  private stall?: EngineBrokenError;

  constructor(private readonly options: EngineOptions) {}

  /** Whether the thread hangs: it will never draw again. */
  get isStalled(): boolean {
    return this.stall !== undefined;
  }

  /** Starts the thread, and returns its device, with the reason if that is not the requested one. */
  async start(): Promise<{ device: Device; fallback?: string }> {
    const { device, fallback } = await this.running();
    return { device, ...(fallback && { fallback }) };
  }

  /**
   * @returns milliseconds of drawing, without loading the model
   * @throws DrawingAbortedError within a step of `signal`
   * @throws DrawingRefusedError if the model, its weights or the request are at fault
   * @throws EngineBrokenError for everything else
   */
  async draw(drawing: Drawing): Promise<{ computeMs: number }> {
    if (this.pending) throw new Error('An engine draws one request at a time.');
    const { model, request, upscaler, signal } = drawing;
    const id = this.nextId++;
    const cancel = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    const stop = (): void => void Atomics.store(new Int32Array(cancel), 0, 1);
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    const command: EngineCommand = { type: 'draw', id, model, request, cancel, ...(upscaler && { upscaler }) };
    this.reportedAt = performance.now();
    const watch = setInterval(() => this.checkForStall(), Math.min(this.options.stallMs / 4, longestWatchIntervalMs));
    try {
      return await new Promise((resolve, reject) => {
        this.pending = { id, drawing, resolve, reject };
        this.running().then(({ worker }) => worker.postMessage(command), reject);
      });
    } finally {
      this.pending = undefined;
      clearInterval(watch);
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

  private checkForStall(): void {
    const silentMs = performance.now() - this.reportedAt;
    if (!this.pending || this.stall || silentMs < this.options.stallMs) return;
    this.stall = new EngineBrokenError(`The engine has said nothing for ${Math.round(silentMs / 1000)} s.`);
    this.options.onStall?.(this.stall);
    this.pending.reject(this.stall);
  }

  private running(): Promise<RunningThread> {
    if (this.stall) return Promise.reject(this.stall);
    return (this.thread ??= this.startThread());
  }

  private startThread(): Promise<RunningThread> {
    const {
      threadFile,
      onLoaded: _onLoaded,
      onCrash,
      stallMs: _stallMs,
      onStall: _onStall,
      ...workerData
    } = this.options;
    return new Promise((resolve, reject) => {
      const worker = new Worker(threadFile ?? join(__dirname, 'engine-thread.js'), { workerData });
      let cause: unknown;
      worker.on('message', (report: EngineReport) => {
        if (report.type === 'ready') resolve({ worker, device: report.device, fallback: report.fallback });
        else this.handleReport(report);
      });
      worker.on('error', (error) => (cause = error));
      worker.once('exit', (code) => {
        this.thread = undefined;
        const error = new EngineBrokenError(`The engine's thread ended with code ${code}.`, { cause });
        reject(error);
        this.pending?.reject(error);
        if (!this.closing) onCrash?.(error);
      });
    });
  }

  private handleReport(report: Exclude<EngineReport, { type: 'ready' }>): void {
    this.reportedAt = performance.now();
    if (report.type === 'loaded') return this.options.onLoaded?.(report);
    const pending = this.pending;
    // Late reports of an aborted drawing are ignored.
    if (pending?.id !== report.id) return;
    const { drawing } = pending;
    if (report.type === 'started') drawing.onStarted?.(report);
    else if (report.type === 'progress') drawing.onProgress?.(report);
    else if (report.type === 'picture') drawing.onPicture(report.index, report.picture, report.upscaled);
    else if (report.type === 'done') pending.resolve({ computeMs: report.computeMs });
    else if (report.type === 'failed') pending.reject(failureError(report));
  }
}

function failureError({ failure, message, stack }: Extract<EngineReport, { type: 'failed' }>): Error {
  if (failure === 'aborted') return new DrawingAbortedError(message);
  if (failure === 'refused') return new DrawingRefusedError(message);
  const error = new EngineBrokenError(message);
  if (stack) error.stack = stack;
  return error;
}
