import type { Readable } from 'node:stream';

/** A stored object as the storage lists it. */
export interface StoredObject {
  key: string;
  bytes: number;
  modifiedAt: Date;
}

/** Where pictures and uploaded weights lie: the file system or an S3-compatible store. Keys are relative paths with `/`. */
export interface ImageStorage {
  /** Writes a whole object or nothing: no reader ever sees a part of it. */
  write(key: string, data: Uint8Array | Readable): Promise<void>;
  /** Opens an object; undefined when there is none. */
  read(key: string): Promise<{ stream: Readable; bytes: number } | undefined>;
  /** Removes every object whose key starts with `prefix`. Absent ones are no error. */
  removeAll(prefix: string): Promise<void>;
  /** Every object under a prefix, in no order. */
  list(prefix?: string): AsyncIterable<StoredObject>;
  /** A path on this machine that holds the object's content, fetched into a cache where it is remote. */
  localPath(key: string): Promise<string>;
  /** Throws one plain sentence when the storage cannot be written. */
  check(): Promise<void>;
}
