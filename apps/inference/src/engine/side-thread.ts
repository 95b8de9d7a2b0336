import type { Device, GraphFile, GraphSession } from '@app/diffusion';
import { providerOf } from '@app/diffusion';
import type { InferenceSession } from 'onnxruntime-node';
import { Lane } from './lane';
import { maxBeside } from './lane-places';
import { OneAtATime } from './one-at-a-time';
import { SharedClock } from './work-clock';

/** The device, and the threads of operators that its provider leaves to the processor. */
interface SideThreadOptions {
  device: Device;
  intraOpNumThreads: number;
}

/**
 * The second thread of an engine on a GPU. Text encoders, VAE decoders and upscalers are loaded there and nowhere else,
 * and called there one at a time, while the engine's own thread makes calls of the U-Net. It starts when it is first
 * needed.
 */
export class SideThread {
  /** Of the GPU, which both threads share. */
  readonly clock = new SharedClock();
  private readonly queue = new OneAtATime();
  private lane: Lane | undefined;
  private pieces = 0;
  /** Calls of the U-Net that have begun since the thread last answered. */
  private beside = 0;
  private answers = 0;

  /**
   * @param onEnd told when a piece of work has ended, however
   * @param onLost told when the thread has ended by itself: its engine is of no use
   */
  private constructor(
    private readonly options: SideThreadOptions,
    private readonly onEnd: () => void,
    private readonly onLost: (error: Error) => void,
  ) {}

  /**
   * None on the processor, which has lanes, nor through WebGPU: ONNX Runtime 1.30 crashes when two threads call it
   * there at once.
   */
  static of(options: SideThreadOptions, onEnd: () => void, onLost: (error: Error) => void): SideThread | undefined {
    return SideThread.isFor(options.device) ? new SideThread(options, onEnd, onLost) : undefined;
  }

  static isFor(device: Device): boolean {
    return providerOf(device) === 'cuda';
  }

  /** Whether no piece of work is under way or waits. */
  get isIdle(): boolean {
    return this.pieces === 0;
  }

  /** Does a piece of work, after those that came before. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.pieces++;
    try {
      return await this.queue.run(work);
    } finally {
      this.pieces--;
      this.onEnd();
    }
  }

  /**
   * A call of the U-Net is about to begin.
   * @returns whether it may: not while the thread hangs, so that its engine falls silent and is replaced
   */
  letsCallBegin(): boolean {
    const { isBusy = false, answers = 0 } = this.lane ?? {};
    if (!isBusy || answers !== this.answers) this.beside = 0;
    this.answers = answers;
    return this.beside++ < maxBeside;
  }

  /** @throws as `ModelSession.open` */
  open(graph: GraphFile, optimizedModelDir: string): Promise<GraphSession> {
    return this.started().open({ type: 'open', graph, ...this.options, optimizedModelDir });
  }

  /** @throws as `ModelSession.openFile` */
  openFile(file: string, options: InferenceSession.SessionOptions): Promise<GraphSession> {
    return this.started().open({ type: 'openFile', file, options });
  }

  /** Ends the thread when it has done what it was asked for. */
  async close(): Promise<void> {
    await this.queue.idle();
    await this.lane?.close();
  }

  private started(): Lane {
    return (this.lane ??= new Lane(this.onLost));
  }
}
