import type { Response } from 'express';

/** A reader who takes nothing for so long is cut off. */
const stallMs = 30_000;

/**
 * Writes a piece of an answer and waits until the reader has taken what was written before.
 * @returns false when there is nobody to write to any more.
 */
export function writePiece(response: Response, piece: string, timeoutMs = stallMs): Promise<boolean> {
  if (response.closed || response.destroyed) return Promise.resolve(false);
  if (response.write(piece)) return Promise.resolve(true);
  return new Promise((resolve) => {
    const end = (taken: boolean) => () => {
      clearTimeout(timer);
      response.off('drain', onDrain).off('close', onClose);
      if (!taken) response.destroy();
      resolve(taken);
    };
    const onDrain = end(true);
    const onClose = end(false);
    const timer = setTimeout(onClose, timeoutMs);
    response.on('drain', onDrain).on('close', onClose);
  });
}
