import { serveWork } from '@app/process';
import { type Decoded, decodePicture, type DecodingOrder } from './decode-picture';
import { NoPictureError } from './picture-error';

/** A decoded file, or why it is no picture. */
export type DecodingResult = { outcome: 'decoded'; decoded: Decoded } | { outcome: 'refused'; reason: string };

serveWork(async (order: DecodingOrder): Promise<DecodingResult> => {
  try {
    return { outcome: 'decoded', decoded: await decodePicture(order) };
  } catch (error) {
    if (error instanceof NoPictureError) return { outcome: 'refused', reason: error.message };
    throw error;
  }
});
