/** What a piece of work has had of its device. */
export interface DeviceTime {
  /** Milliseconds of the device that are its own. */
  ms: number;
  /** All milliseconds from its beginning to its end. */
  passedMs: number;
  /** Milliseconds in which the engine's own thread was at it, and could do nothing else. */
  blockedMs: number;
  /** Whether the device did other work in that time. */
  isShared: boolean;
}

/** Measures pieces of work. */
export interface WorkClock {
  /**
   * @param took told of the time, also if the work failed
   * @param cancel one Int32: once it is not 0, calls of this piece in the second thread that have not begun are dropped
   */
  during: <T>(work: () => Promise<T>, took: (time: DeviceTime) => void, cancel?: SharedArrayBuffer) => Promise<T>;
}

/** The clocks of an engine. */
export interface WorkClocks {
  /** Of calls of the U-Net. */
  unet: WorkClock;
  /** Of encoding, decoding and enlarging, which a second thread may do. */
  others: WorkClock;
}

export const wallClock: WorkClock = {
  during: async (work, took) => {
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      const passedMs = performance.now() - startedAt;
      took({ ms: passedMs, passedMs, blockedMs: passedMs, isShared: false });
    }
  },
};

/** For a device that does one piece of work at a time, or whose pieces have fixed parts of it. */
export const wallClocks: WorkClocks = { unet: wallClock, others: wallClock };

/** Milliseconds of a clock that all threads of the process have in common, and that never goes back. */
export const threadsNow = (): number => Number(process.hrtime.bigint()) / 1e6;
