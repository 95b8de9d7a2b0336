import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate } from 'node:timers/promises';
import { type DeviceTime, threadsNow, type WorkClocks } from './work-clock';

/** A call of the device, in milliseconds of `threadsNow`. Infinity: it has not begun, or not ended. */
interface DeviceCall {
  readonly askedAt: number;
  beganAt: number;
  endedAt: number;
}

/** A call that the second thread was asked for. */
export interface AskedCall {
  /** One Int32; if it is not 0, the call is not made any more. */
  cancel?: SharedArrayBuffer;
  /** @param at milliseconds of `threadsNow`, as the second thread has read them */
  began: (at: number) => void;
  /** The call is over, or it was never made. */
  ended: (at: number) => void;
}

/** A piece of work of the second thread. */
interface PieceInProgress {
  cancel: SharedArrayBuffer | undefined;
  time: DeviceTime;
}

const noTime: DeviceTime = { ms: 0, passedMs: 0, blockedMs: 0, isShared: false };

/**
 * The calls of a device by two threads, each of which makes one call at a time. While both are at one, each call has
 * half of the time. When the calls of the second thread begin and end is read in that thread, because the engine's own
 * is inside the runtime meanwhile. Source: generalized processor sharing (Parekh, Gallager 1993).
 */
export class DeviceCalls {
  /** Those that are not measured, and those that one of these may have run beside. */
  private readonly calls = new Set<DeviceCall>();
  private readonly unmeasured = new Set<DeviceCall>();
  /** The piece of work that asks for a call. */
  private readonly piece = new AsyncLocalStorage<PieceInProgress>();

  /**
   * @param now as `threadsNow`
   * @param heard resolves when all is heard that the second thread has said so far
   */
  constructor(
    private readonly now: () => number = threadsNow,
    private readonly heard: () => Promise<void> = () => setImmediate(),
  ) {}

  readonly clocks: WorkClocks = {
    unet: {
      during: async (work, took) => {
        const call = this.add();
        call.beganAt = call.askedAt;
        try {
          return await work();
        } finally {
          call.endedAt = this.now();
          await this.heard();
          const time = this.measure(call);
          took({ ...time, blockedMs: time.passedMs });
        }
      },
    },
    // Only the calls count: not the time in which a piece waits for the second thread, nor what the engine's own thread
    // does for it, such as cutting and blending tiles.
    others: {
      during: async (work, took, cancel) => {
        const piece: PieceInProgress = { cancel, time: noTime };
        try {
          return await this.piece.run(piece, work);
        } finally {
          took(piece.time);
        }
      },
    },
  };

  /**
   * The second thread is asked for a call, by the piece of work that is in progress: the caller is inside the
   * asynchronous context of the `work` that `clocks.others.during` was given. Outside of one, the call is charged to
   * nobody.
   */
  ask(): AskedCall {
    const piece = this.piece.getStore();
    const call = this.add();
    return {
      ...(piece?.cancel && { cancel: piece.cancel }),
      began: (at) => void (call.beganAt = at),
      ended: (at) => {
        call.endedAt = at;
        const time = this.measure(call);
        if (piece) piece.time = sumOf(piece.time, time);
      },
    };
  }

  private add(): DeviceCall {
    const call = { askedAt: this.now(), beganAt: Infinity, endedAt: Infinity };
    this.calls.add(call);
    this.unmeasured.add(call);
    return call;
  }

  private measure(call: DeviceCall): DeviceTime {
    let sharedMs = 0;
    for (const other of this.calls) if (other !== call) sharedMs += overlapMs(call, other);
    this.unmeasured.delete(call);
    const since = Math.min(...[...this.unmeasured].map(({ askedAt }) => askedAt));
    for (const each of this.calls) if (!this.unmeasured.has(each) && each.endedAt <= since) this.calls.delete(each);
    if (call.beganAt === Infinity) return noTime;
    const passedMs = call.endedAt - call.beganAt;
    return { ms: passedMs - sharedMs / 2, passedMs, blockedMs: 0, isShared: sharedMs > 0 };
  }
}

function overlapMs(one: DeviceCall, other: DeviceCall): number {
  return Math.max(0, Math.min(one.endedAt, other.endedAt) - Math.max(one.beganAt, other.beganAt));
}

function sumOf(one: DeviceTime, other: DeviceTime): DeviceTime {
  return {
    ms: one.ms + other.ms,
    passedMs: one.passedMs + other.passedMs,
    blockedMs: 0,
    isShared: one.isShared || other.isShared,
  };
}
