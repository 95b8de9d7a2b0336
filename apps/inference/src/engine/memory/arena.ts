/** Bytes that a call takes of each part of a model whose memory depends on what it is called with. */
export interface CallBytes {
  textEncoder?: number;
  unet?: number;
  vaeDecoder?: number;
  upscaler?: number;
}

/** Bytes of a call of the U-Net, and of decoding one picture. */
export type DrawingCalls = Required<Pick<CallBytes, 'unet' | 'vaeDecoder'>>;

/**
 * What a session's arena holds, by what its calls were estimated to take. ONNX Runtime gives no memory back before the
 * session ends, and the pieces that a smaller call has left are of no use to a larger one: measured of 2, 4 and 6 rows,
 * it holds what all three take.
 */
export class Arena {
  private largest = 0;
  private held = 0;

  get bytes(): number {
    return this.held;
  }

  /** Bytes of the largest call so far: one of no more takes none that the arena does not hold. */
  get largestCall(): number {
    return this.largest;
  }

  /** By how much a call makes it grow. */
  growth(bytes: number): number {
    return bytes > this.largest ? bytes : 0;
  }

  note(bytes: number): void {
    this.held += this.growth(bytes);
    this.largest = Math.max(this.largest, bytes);
  }
}

/** The arenas of a model's sessions, of which each of `threads` threads has its own: a call of one counts for each. */
export class Arenas {
  constructor(
    private readonly threads: number,
    private readonly byPart: Record<keyof CallBytes, Arena>,
  ) {}

  /** By how much these calls make them grow. */
  growth(calls: CallBytes): number {
    return this.threads * partsOf(calls).reduce((sum, [part, bytes]) => sum + this.byPart[part].growth(bytes), 0);
  }

  note(calls: CallBytes): void {
    for (const [part, bytes] of partsOf(calls)) this.byPart[part].note(bytes);
  }

  /**
   * Bytes that one call of the U-Net may take.
   * @param left bytes for the calls of all threads, and for decoding a picture in each
   * @param decoding bytes of decoding one picture
   */
  callBytes(left: number, decoding: number): number {
    const { unet, vaeDecoder } = this.byPart;
    return Math.max(unet.largestCall, left / this.threads - vaeDecoder.growth(decoding));
  }
}

const partsOf = (calls: CallBytes) => Object.entries(calls) as [keyof CallBytes, number][];
