import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import { namesEtag } from './response-headers';

interface Sent {
  /** Owner of the file, not its reader. */
  ownerId: string;
  stream: Readable;
  etag: string;
}

/** Open readers, of whom one may be cut off. */
interface Readers {
  add(ownerId: string, stream: Readable, cut: () => void): void;
}

/**
 * Sends a file for which the response's headers are set, except to a client that has it or asks for the headers alone.
 */
export async function sendStored(response: Response, { ownerId, stream, etag }: Sent, readers: Readers): Promise<void> {
  const { req: request } = response;
  const isKnown = namesEtag(request.headers['if-none-match'], etag);
  if (isKnown || request.method === 'HEAD' || response.closed) {
    stream.destroy();
    if (isKnown) response.status(304).removeHeader('Content-Length');
    response.end();
    return;
  }
  readers.add(ownerId, stream, () => response.destroy());
  // A client's disconnect is not an error; the headers are already sent, so no error response is possible either.
  await pipeline(stream, response).catch(() => response.destroy());
}
