import { type Device, type GraphFile, type GraphSession, providerOf } from '@app/diffusion';
import type { InferenceSession } from 'onnxruntime-node';
import { DeviceCalls } from '../time/device-calls';
import { BegunBeside } from './begun-beside';
import { RemoteSessions } from './remote-sessions';

/** The device, and the threads of operators that its provider leaves to the processor. */
interface SideThreadOptions {
  device: Device;
  intraOpNumThreads: number;
}

/**
 * Pieces of work that are handed to the second thread while it is at them: it begins the next one by itself, even if
 * the engine is inside a call of the U-Net.
 */
const mostHanded = 2;

/**
 * The second thread of an engine with CUDA. Text encoders, VAE decoders and upscalers are loaded there and nowhere
 * else, and called there one after the other, while the engine's own thread makes calls of the U-Net. It starts when it
 * is first needed.
 */
export class SideThread {
  /** Of the GPU, by both threads. */
  readonly calls = new DeviceCalls();
  private sessions: RemoteSessions | undefined;
  private readonly pieces = new Set<Promise<unknown>>();
  /** Calls of the U-Net that have begun since the thread last answered, and what it had answered by then. */
  private beside = new BegunBeside();
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
    return this.pieces.size === 0;
  }

  /** Whether it has so little to do that it should be handed another piece of work. */
  get hasPlace(): boolean {
    return this.pieces.size < mostHanded;
  }

  /** Begins a piece of work. Its calls are made in the order in which all pieces ask for them. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const piece = work();
    this.pieces.add(piece);
    try {
      return await piece;
    } finally {
      this.pieces.delete(piece);
      this.onEnd();
    }
  }

  /**
   * Whether a call of the U-Net may begin beside what this thread is at: not while it hangs, so that its engine falls
   * silent and is replaced.
   */
  get mayBeginBeside(): boolean {
    return !this.isSilent || this.beside.mayBegin;
  }

  /** A call of the U-Net begins. */
  beginsBeside(): void {
    if (!this.isSilent) this.beside = new BegunBeside();
    this.beside.note();
    this.answers = this.sessions?.answers ?? 0;
  }

  /** Whether it is busy, and has answered nothing since the last call of the U-Net began. */
  private get isSilent(): boolean {
    return this.sessions !== undefined && this.sessions.isBusy && this.sessions.answers === this.answers;
  }

  /** @throws as `ModelSession.open` */
  open(graph: GraphFile, optimizedModelDir: string): Promise<GraphSession> {
    return this.started().open({ type: 'open', graph, ...this.options, optimizedModelDir });
  }

  /** @throws as `ModelSession.openFile` */
  openFile(file: string, options: InferenceSession.SessionOptions): Promise<GraphSession> {
    return this.started().open({ type: 'openFile', file, options });
  }

  /** Resolves when no piece of work is under way. */
  async idle(): Promise<void> {
    while (!this.isIdle) await Promise.allSettled(this.pieces);
  }

  /** Ends the thread when it has done what it was asked for. */
  async close(): Promise<void> {
    await this.idle();
    await this.sessions?.close();
  }

  private started(): RemoteSessions {
    return (this.sessions ??= new RemoteSessions('The second thread', this.onLost, this.calls));
  }
}
