import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { BodyTooLargeError, MalformedBodyError, ServiceUnavailableError } from '../http/http-errors';

/** How long a sender whose file is refused may go on, so that it reads the answer and not a broken connection. */
const lingerMs = 1_000;

/**
 * Writes a request's body to a new file as it comes, and hashes it.
 * @param declaredBytes what the sender says of its size, if it does.
 * @returns SHA-256 in hexadecimal. What a failed call has written is the caller's to remove.
 * @throws BodyTooLargeError, MalformedBodyError when it is empty or breaks off, ServiceUnavailableError on a full disk
 */
export async function receiveFile(
  body: Readable,
  path: string,
  { maxBytes, declaredBytes = 0 }: { maxBytes: number; declaredBytes?: number },
): Promise<string> {
  // Its failure is heard where it is read; before that it would end the process.
  body.on('error', () => undefined);
  try {
    if (declaredBytes > maxBytes) throw new BodyTooLargeError(maxBytes);
    return await write(body, path, maxBytes);
  } catch (error) {
    await discardRest(body);
    throw error;
  }
}

async function write(body: Readable, path: string, maxBytes: number): Promise<string> {
  const hash = createHash('sha256');
  let bytes = 0;
  const file = await onDisk(open(path, 'wx'));
  try {
    // A stream that is destroyed on the way out takes the connection, and so the answer, with it.
    for await (const chunk of unbroken(body)) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new BodyTooLargeError(maxBytes);
      hash.update(chunk);
      await onDisk(file.writeFile(chunk));
    }
  } finally {
    await file.close();
  }
  if (bytes === 0) throw new MalformedBodyError('it is empty, and a safetensors file is needed');
  return hash.digest('hex');
}

async function* unbroken(body: Readable): AsyncIterable<Buffer> {
  const chunks = body.iterator({ destroyOnReturn: false });
  for (;;) {
    const next = await (chunks.next() as Promise<IteratorResult<Buffer, undefined>>).catch((error: Error) => {
      throw new MalformedBodyError(`it broke off (${error.message})`);
    });
    if (next.done) return;
    yield next.value;
  }
}

/** Awaits a write to this machine's disk. @throws ServiceUnavailableError when it is full. */
export async function onDisk<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOSPC' || code === 'EDQUOT')
      throw new ServiceUnavailableError('There is no room for the file at the moment.', 60);
    throw error;
  }
}

async function discardRest(body: Readable): Promise<void> {
  if (body.readableEnded || body.destroyed) return;
  const stop = new AbortController();
  const ended = new Promise<void>((resolve) => body.once('close', resolve).once('end', resolve).once('error', resolve));
  body.resume();
  await Promise.race([ended, setTimeout(lingerMs, undefined, { signal: stop.signal }).catch(() => undefined)]);
  stop.abort();
}
