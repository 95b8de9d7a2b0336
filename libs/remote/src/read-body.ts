import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';

/** An answer came in so many small pieces that to read it would hold up the process. */
export class SmallPiecesError extends Error {
  override readonly name = 'SmallPiecesError';

  constructor() {
    super('The answer comes in too many small pieces.');
  }
}

/** Any answer may have so many pieces, and further ones of a mean size: each costs the process about a microsecond. */
const freePieces = 4_000;
const meanBytes = 256;

/**
 * Passes on each piece of a body until it ends or `take` throws. An iterator would join small pieces, so that they
 * could not be counted.
 * @throws SmallPiecesError; what `take` throws; an error of the connection
 */
export async function readBody(body: Readable, take: (piece: Buffer) => void): Promise<void> {
  let pieces = 0;
  let bytes = 0;
  body.on('data', (piece: Buffer) => {
    if (body.destroyed) return;
    pieces++;
    bytes += piece.length;
    try {
      if (pieces > freePieces + bytes / meanBytes) throw new SmallPiecesError();
      take(piece);
    } catch (error) {
      body.destroy(error as Error);
    }
  });
  await finished(body);
}
