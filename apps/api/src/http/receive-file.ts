import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { BodyTooLargeError, DomainError, MalformedBodyError, ServiceUnavailableError } from '@app/domain';
import { isDiskFull } from '@app/process';

/**
 * An upload's only time limit is its progress: the slowest line that could send a file of weights in a day sends more
 * than this; a slower one only holds a connection and disk space.
 */
export const uploadProgress = { bytes: 64 * 1024, windowMs: 30_000 };
/** Checks of the progress in that time. */
const looks = 10;
/**
 * The disk space is checked once per this many bytes, and they are synced: whoever else syncs, such as the database's
 * log, waits for no more than these.
 */
const pieceBytes = 4 * 1024 * 1024;

/** The sender is almost silent. */
export class UploadStalledError extends DomainError<'timeout'> {
  constructor({ bytes, windowMs }: typeof uploadProgress) {
    super('timeout', 'UploadStalled', `Fewer than ${bytes} bytes came in ${windowMs / 1000} s. Send the file again.`);
  }
}

export interface ReceiveOptions {
  maxBytes: number;
  /** The error for a larger body. */
  tooMany?: () => Error;
  /** Aborts the upload with its reason. */
  signal?: AbortSignal;
  /** Throws when the disk has no room for more. */
  assertRoom?: () => Promise<void>;
  progress?: typeof uploadProgress;
  /** The right kind of body, for the message about an empty one. */
  kind?: string;
}

/** A file that a caller sends. */
export interface SentFile {
  /** Tells the caller to start sending, and returns the stream. */
  begin: () => Readable;
  /** As the sender declares it. */
  declaredBytes?: number;
  /** @throws DomainError for a body that wraps the file. */
  assertBare: () => void;
  /** Notes the SHA-256 of the file: a repeat with the same Idempotency-Key must have the same. */
  noteHash: (hash: string) => void;
  /** Closed when the caller has gone. */
  answer: Writable;
}

/**
 * Writes a request's body to a new file, and hashes it.
 * @returns its size, and its SHA-256 in hexadecimal. The caller removes the file of a failed call.
 * @throws BodyTooLargeError, MalformedBodyError when it is empty or interrupted, UploadStalledError,
 * ServiceUnavailableError on a full disk, and the signal's reason
 */
export async function receiveFile(
  body: Readable,
  path: string,
  options: ReceiveOptions,
): Promise<{ hash: string; bytes: number }> {
  const { maxBytes, tooMany = () => new BodyTooLargeError(maxBytes), assertRoom, kind = 'a file' } = options;
  // Its failure is handled where it is read; unhandled before that, it would end the process.
  body.on('error', () => undefined);
  await assertRoom?.();
  const hash = createHash('sha256');
  let bytes = 0;
  let pieceEnd = pieceBytes;
  const file = await mapDiskErrors(open(path, 'wx'));
  try {
    await readAll(body, options, async (chunk) => {
      bytes += chunk.length;
      if (bytes > maxBytes) throw tooMany();
      if (bytes >= pieceEnd) {
        await mapDiskErrors(file.datasync());
        await assertRoom?.();
        pieceEnd = bytes + pieceBytes;
      }
      hash.update(chunk);
      await mapDiskErrors(file.writeFile(chunk));
    });
  } finally {
    await file.close();
  }
  if (bytes === 0) throw new MalformedBodyError(`it is empty, and ${kind} is needed`);
  return { hash: hash.digest('hex'), bytes };
}

/** Reads a body to its end, and hashes it. @throws as `receiveFile` does */
export async function hashBody(body: Readable, maxBytes: number): Promise<string> {
  const hash = createHash('sha256');
  let bytes = 0;
  await readAll(body, { maxBytes }, async (chunk) => {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new BodyTooLargeError(maxBytes);
    hash.update(chunk);
  });
  return hash.digest('hex');
}

/**
 * Processes a body piece by piece: many small chunks are one piece. A failure stops reading but leaves the stream open,
 * because the response uses its connection.
 */
function readAll(
  body: Readable,
  { signal, progress: pace = uploadProgress }: ReceiveOptions,
  take: (chunk: Buffer) => Promise<void>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let taking: Promise<void> = Promise.resolve();
    let [newBytes, isTaking, isSettled] = [0, false, false];
    /** Bytes received at each of the last checks. */
    const recent: number[] = [];
    const clock = setInterval(() => {
      recent.push(newBytes);
      newBytes = 0;
      if (recent.length < looks) return;
      if (recent.reduce((sum, each) => sum + each) < pace.bytes) settle(new UploadStalledError(pace));
      recent.shift();
    }, pace.windowMs / looks);
    const settle = (error?: Error): void => {
      isSettled = true;
      clearInterval(clock);
      signal?.removeEventListener('abort', onAbort);
      body.off('readable', onReadable).off('end', onEnd).off('close', onClose).off('error', onBreak);
      // The file must not be closed while a chunk is being written.
      void taking.catch(() => undefined).then(() => (error ? reject(error) : resolve()));
    };
    const onReadable = (): void => {
      const piece = isTaking || isSettled ? null : (body.read() as Buffer | null);
      if (!piece) return;
      newBytes += piece.length;
      isTaking = true;
      taking = take(piece);
      taking.then(() => {
        isTaking = false;
        onReadable();
      }, settle);
    };
    // The stream may end while its last chunk is still being written.
    const onEnd = (): void => {
      body.off('close', onClose);
      void taking.then(() => settle(), settle);
    };
    const onBreak = (error: Error): void => settle(new MalformedBodyError(`it broke off (${error.message})`));
    const onClose = (): void => onBreak(new Error('closed'));
    const onAbort = (): void => settle(signal?.reason as Error);
    body.on('readable', onReadable).once('end', onEnd).once('error', onBreak).once('close', onClose);
    signal?.addEventListener('abort', onAbort);
    if (signal?.aborted) onAbort();
    else if (body.destroyed && !body.readableEnded) onClose();
  });
}

/** Codes of a disk that is broken, read-only, not there or of another owner. */
const unusableCodes = ['EIO', 'EROFS', 'ENOENT', 'EACCES', 'EPERM'];

/** Awaits a write to this machine's disk. @throws ServiceUnavailableError when it takes nothing. */
export async function mapDiskErrors<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (unusableCodes.includes(code))
      throw new ServiceUnavailableError('The service cannot store files at the moment.', 60);
    if (isDiskFull(error)) throw new ServiceUnavailableError('There is no room for the file at the moment.', 60);
    throw error;
  }
}
