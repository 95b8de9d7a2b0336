import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';

/** sha256 of a file, in hexadecimal, read as a stream. `onBytes` gets the size of each chunk. */
export async function hashFile(path: string, onBytes?: (bytes: number) => void, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20, ...(signal && { signal }) })) {
    hash.update(chunk as Buffer);
    onBytes?.((chunk as Buffer).length);
  }
  return hash.digest('hex');
}

/**
 * One hash for a whole model: sha256 over `<path> NUL <sha256 of the file> LF` of every file, sorted by path. The same
 * files give the same hash wherever they were installed.
 * @param files relative path -> sha256 in hexadecimal
 */
export function contentHash(files: ReadonlyMap<string, string>): string {
  const hash = createHash('sha256');
  for (const [path, digest] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) hash.update(`${path}\0${digest}\n`);
  return hash.digest('hex');
}

/** The first 12 digits of a content hash, as in records and pictures. */
export const shortHash = (hash: string): string => hash.slice(0, 12);

/** `<model>@<hash>`, as in `served_by`. */
export function weightsName({ name, hash = '' }: { name: string; hash?: string | undefined }): string {
  return `${name}@${shortHash(hash)}`;
}
