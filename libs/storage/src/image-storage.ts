import type { Readable } from 'node:stream';

/** A stored object in a listing. */
export interface StoredObject {
  key: string;
  bytes: number;
  modifiedAt: Date;
}

/**
 * Storage of pictures and uploaded weights: the file system or an S3-compatible store. Keys are
 * relative paths with `/`.
 */
export interface ImageStorage {
  /** Writes an object atomically: no reader sees a part of it. */
  write(key: string, data: Uint8Array | Readable): Promise<void>;
  /** Writes a file of this machine as an object, atomically too. It may be moved: its path is its owner's no more. */
  adopt(key: string, path: string): Promise<void>;
  /** Opens an object; undefined if there is none. */
  read(key: string): Promise<{ stream: Readable; bytes: number } | undefined>;
  /** Removes every object whose key starts with `prefix`. Missing ones are no error. */
  removeAll(prefix: string): Promise<void>;
  /** Every object under a prefix, unordered. */
  list(prefix?: string): AsyncIterable<StoredObject>;
  /** A local path to the object's content; a remote object is fetched into a cache. */
  localPath(key: string): Promise<string>;
  /** Whether it has room for more files, as far as that is known without writing one. */
  hasRoom(): Promise<boolean>;
  /** Throws one plain sentence if the storage is not writable, or its disk is full. */
  check(): Promise<void>;
}

/** The storage cannot be reached or rejects requests. The data to be stored is not at fault. */
export class StorageUnavailableError extends Error {
  override readonly name = 'StorageUnavailableError';

  /** @param isPassing whether a retry may succeed soon. */
  constructor(
    reason: string,
    readonly isPassing: boolean,
    options?: ErrorOptions,
  ) {
    super(`The storage cannot be used: ${reason}.`, options);
  }
}
