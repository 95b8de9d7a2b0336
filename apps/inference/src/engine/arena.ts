/** Bytes that calls take of the parts of a model whose memory depends on the picture. */
export type DrawingCalls = Record<'unet' | 'vaeDecoder', number>;

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
export class DrawingArenas {
  private readonly unet = new Arena();
  private readonly vaeDecoder = new Arena();

  constructor(private readonly threads: number) {}

  get bytes(): number {
    return this.threads * (this.unet.bytes + this.vaeDecoder.bytes);
  }

  /** By how much these calls make them grow. */
  growth({ unet, vaeDecoder }: DrawingCalls): number {
    return this.threads * (this.unet.growth(unet) + this.vaeDecoder.growth(vaeDecoder));
  }

  note({ unet, vaeDecoder }: DrawingCalls): void {
    this.unet.note(unet);
    this.vaeDecoder.note(vaeDecoder);
  }

  /**
   * Bytes that one call of the U-Net may take.
   * @param left bytes for the calls of all threads, and for decoding a picture in each
   * @param decoding bytes of decoding one picture
   */
  callBytes(left: number, decoding: number): number {
    return Math.max(this.unet.largestCall, left / this.threads - this.vaeDecoder.growth(decoding));
  }
}
