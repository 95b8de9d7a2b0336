import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ByteRange } from '@app/storage';
import type { Request, Response } from 'express';
import { namesEtag } from './response-headers';

interface Sent {
  /** Owner of the file, not its reader. */
  ownerId: string;
  stream: Readable;
  bytes: number;
  etag: string;
  /** Opens a part of it; without this it is sent whole. */
  open?: (range: ByteRange) => Promise<Readable | undefined>;
}

/** Open readers, of whom one may be cut off. */
interface Readers {
  add(ownerId: string, stream: Readable, cut: () => void): void;
}

/**
 * Sends a file for which the response's headers are set, or the part that is asked for, except to a client that has it
 * or asks for the headers alone.
 */
export async function sendStored(response: Response, sent: Sent, readers: Readers): Promise<void> {
  const { ownerId, stream, bytes, etag, open } = sent;
  const { req: request } = response;
  response.set({ 'Accept-Ranges': open ? 'bytes' : 'none', 'Content-Length': String(bytes) });
  const isKnown = namesEtag(request.headers['if-none-match'], etag);
  const range = isKnown ? undefined : rangeOf(request, sent);
  if (isKnown) response.status(304).removeHeader('Content-Length');
  if (range === 'none') refusePart(response, bytes);
  const hasBody = !isKnown && range !== 'none' && request.method !== 'HEAD' && !response.closed;
  if (!hasBody || range) stream.destroy();
  if (!hasBody) return void response.end();
  const sending = range ? await openPart(response, range, sent) : stream;
  if (!sending || response.closed) return void response.destroy();
  readers.add(ownerId, sending, () => response.destroy());
  // A client's disconnect is not an error; the headers are already sent, so no error response is possible either.
  await pipeline(sending, response).catch(() => response.destroy());
}

/** No cache keeps this in the place of the file. */
function refusePart(response: Response, bytes: number): void {
  for (const name of ['Content-Type', 'ETag']) response.removeHeader(name);
  const headers = { 'Content-Range': `bytes */${bytes}`, 'Content-Length': '0', 'Cache-Control': 'no-store' };
  response.status(416).set(headers);
}

function openPart(response: Response, { start, end }: ByteRange, { bytes, open }: Sent): Promise<Readable | undefined> {
  const headers = { 'Content-Range': `bytes ${start}-${end}/${bytes}`, 'Content-Length': String(end - start + 1) };
  response.status(206).set(headers);
  return open!({ start, end });
}

/**
 * The part that a GET asks for; undefined for the whole, also where several parts are asked for or the file is another
 * than the one of which the client has a part; `none` where it has no such part. Source: RFC 9110, 13.1.5 and 14.2.
 */
function rangeOf(request: Request, { bytes, etag, open }: Sent): ByteRange | 'none' | undefined {
  const condition = request.headers['if-range'];
  if (!open || request.method !== 'GET' || (condition !== undefined && condition !== etag)) return undefined;
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  if (!first && !last) return undefined;
  const start = first ? Number(first) : Math.max(bytes - Number(last), 0);
  const end = first && last ? Math.min(Number(last), bytes - 1) : bytes - 1;
  return start > end ? 'none' : { start, end };
}
