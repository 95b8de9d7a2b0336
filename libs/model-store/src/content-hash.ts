import type { ModelDefaults } from '@app/diffusion/files';
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';

/** Smaller files are read by the calling thread: to start another takes longer. */
const smallBytes = 4 * 2 ** 20;

/** Reads a file in pieces, and tells the length of each and the hash at the end. It has no imports of the project's. */
const program = `
  const { createHash } = require('node:crypto');
  const { openSync, readSync } = require('node:fs');
  const { parentPort, workerData } = require('node:worker_threads');
  const file = openSync(workerData, 'r');
  const hash = createHash('sha256');
  const piece = Buffer.allocUnsafeSlow(${smallBytes});
  for (let bytes; (bytes = readSync(file, piece)) > 0;) {
    hash.update(piece.subarray(0, bytes));
    parentPort.postMessage(bytes);
  }
  parentPort.postMessage(hash.digest('hex'));
`;

/**
 * sha256 of a file, in hexadecimal. A large one is read in a thread, beside whatever this one does.
 * @param onBytes gets the size of each piece
 */
export async function hashFile(path: string, onBytes?: (bytes: number) => void, signal?: AbortSignal): Promise<string> {
  const { size } = await stat(path);
  if (size < smallBytes) {
    const content = await readFile(path, { ...(signal && { signal }) });
    onBytes?.(content.length);
    return createHash('sha256').update(content).digest('hex');
  }
  signal?.throwIfAborted();
  const thread = new Worker(program, { eval: true, workerData: path });
  const stop = (): void => void thread.terminate();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    return await new Promise((resolve, reject) => {
      thread.on('message', (found: number | string) => (typeof found === 'string' ? resolve(found) : onBytes?.(found)));
      thread.on('error', reject);
      thread.on('exit', () => reject(new Error(`${path} was not read to its end.`)));
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
    void thread.terminate();
  }
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

interface NamedWeights {
  name: string;
  hash?: string | undefined;
  precision?: string | undefined;
}

/** `<model>@<hash>`, as in `served_by`, and `-int8` behind it where its weights are so. */
export function weightsName({ name, hash = '', precision }: NamedWeights): string {
  return `${name}@${shortHash(hash)}${precision === 'int8' ? '-int8' : ''}`;
}

/**
 * The key of a model as it is loaded: `<model>@<hash>`, and what its `darkroom.json` changes of how it is read, which
 * no hash tells.
 */
export function modelKey({ name, hash, defaults = {} }: NamedWeights & { defaults?: ModelDefaults }): string {
  const { clip_skip: clipSkip, prediction_type: predictionType } = defaults;
  return [`${name}@${hash}`, clipSkip && `clip_skip=${clipSkip}`, predictionType].filter(Boolean).join(',');
}
