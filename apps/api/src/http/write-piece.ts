import type { Response } from 'express';

/**
 * Writes a piece of an answer and waits until the reader has taken what was written before.
 * @returns false when there is nobody to write to any more: of a reader who takes nothing, `OpenConnections`
 * closes the connection.
 */
export function writePiece(response: Response, piece: string): Promise<boolean> {
  if (response.closed || response.destroyed) return Promise.resolve(false);
  if (response.write(piece)) return Promise.resolve(true);
  return new Promise((resolve) => {
    const end = (isTaken: boolean) => () => {
      response.off('drain', onDrain).off('close', onClose);
      resolve(isTaken);
    };
    const [onDrain, onClose] = [end(true), end(false)];
    response.on('drain', onDrain).on('close', onClose);
  });
}
