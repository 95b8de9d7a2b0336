import type { Readable } from 'node:stream';

/** A stored object in a listing. */
export interface StoredObject {
  key: string;
  bytes: number;
  modifiedAt: Date;
}

/** The first and the last byte of a part. */
export interface ByteRange {
  start: number;
  end: number;
}

/** Stores pictures and weights, in the file system or S3. Keys are relative paths with `/`. */
export interface ImageStorage {
  /** Atomic: no reader sees a part of an object. */
  write(key: string, data: Uint8Array | Readable): Promise<void>;
  /** Makes a local file an object, atomically. The file may be moved. */
  adopt(key: string, path: string): Promise<void>;
  /** An object, or these bytes of it; undefined if there is none. `bytes` are those of the stream. */
  read(key: string, range?: ByteRange): Promise<{ stream: Readable; bytes: number } | undefined>;
  /** Removes every object whose key starts with `prefix`; a missing one is no error. */
  removeAll(prefix: string): Promise<void>;
  /** Unordered. */
  list(prefix?: string): AsyncIterable<StoredObject>;
  /** A local path to the object's content; a remote object is fetched into a cache. */
  localPath(key: string): Promise<string>;
  /** As far as that is known without writing a file. */
  hasRoom(): Promise<boolean>;
  /** @throws one plain sentence if the storage is not writable, or its disk is full */
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
