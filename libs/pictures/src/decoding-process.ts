import { serveWork } from '@app/process';
import { type Decoded, decodePicture, type DecodingOrder } from './decode-picture';
import { LargePictureError, NoPictureError } from './picture-error';

/** A decoded file, why it is no picture, or the code of the disk's error when the new file was written. */
export type DecodingResult =
  | { outcome: 'decoded'; decoded: Decoded }
  | { outcome: 'refused'; reason: string; isLarge: boolean }
  | { outcome: 'unwritten'; code: string };

serveWork(async (order: DecodingOrder): Promise<DecodingResult> => {
  try {
    return { outcome: 'decoded', decoded: await decodePicture(order) };
  } catch (error) {
    if (error instanceof NoPictureError)
      return { outcome: 'refused', reason: error.message, isLarge: error instanceof LargePictureError };
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (order.to === 'file' && code !== undefined && syscall !== undefined) return { outcome: 'unwritten', code };
    throw error;
  }
});
