import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request, Response } from 'express';
import { namesEtag } from './response-headers';

interface Sent {
  /** Owner of the file, not its reader. */
  ownerId: string;
  stream: Readable;
  bytes: number;
  etag: string;
}

/** Open readers, of whom one may be cut off. */
interface Readers {
  add(ownerId: string, stream: Readable, cut: () => void): void;
}

/**
 * Sends a file for which the response's headers are set, or the part that is asked for, except to a client that has it or
 * asks for the headers alone.
 */
export async function sendStored(response: Response, sent: Sent, readers: Readers): Promise<void> {
  const { ownerId, stream, bytes, etag } = sent;
  const { req: request } = response;
  response.setHeader('Accept-Ranges', 'bytes');
  response.setHeader('Content-Length', bytes);
  const isKnown = namesEtag(request.headers['if-none-match'], etag);
  const range = isKnown ? undefined : rangeOf(request, sent);
  if (range === 'none') response.status(416).set({ 'Content-Range': `bytes */${bytes}`, 'Content-Length': '0' });
  if (isKnown) response.status(304).removeHeader('Content-Length');
  if (isKnown || range === 'none' || request.method === 'HEAD' || response.closed) {
    stream.destroy();
    response.end();
    return;
  }
  readers.add(ownerId, stream, () => response.destroy());
  if (range)
    response.status(206).set({
      'Content-Range': `bytes ${range.start}-${range.end}/${bytes}`,
      'Content-Length': String(range.end - range.start + 1),
    });
  // A client's disconnect is not an error; the headers are already sent, so no error response is possible either.
  await pipeline(range ? Readable.from(partOf(stream, range)) : stream, response).catch(() => response.destroy());
}

/** First and last byte. */
interface ByteRange {
  start: number;
  end: number;
}

/**
 * The part that a GET asks for; undefined for the whole, also where several parts are asked for or the file is another
 * than the one of which the client has a part; `none` where it has no such part. Source: RFC 9110, 13.1.5 and 14.2.
 */
function rangeOf(request: Request, { bytes, etag }: Sent): ByteRange | 'none' | undefined {
  const condition = request.headers['if-range'];
  if (request.method !== 'GET' || (condition !== undefined && condition !== etag)) return undefined;
  const ranges = request.range(bytes, { combine: true });
  if (ranges === -1) return 'none';
  const isOne = Array.isArray(ranges) && ranges.type === 'bytes' && ranges.length === 1;
  return isOne ? ranges[0] : undefined;
}

async function* partOf(stream: Readable, { start, end }: ByteRange): AsyncGenerator<Buffer> {
  let at = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const part = chunk.subarray(Math.max(start - at, 0), Math.max(end + 1 - at, 0));
    at += chunk.length;
    if (part.length > 0) yield part;
    if (at > end) return;
  }
}
