import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';

const pieces = 64;
const pieceBytes = 64 * 1024;

/**
 * A checksum of a file's size and of 64 pieces of it, evenly spread; of all of it up to 4 MiB. It tells files of
 * different models apart, and finds one that is cut short or that a crash has left full of zeros. One wrong bit in a
 * large file is not found: to read 4.5 GB of weights whole takes 7 s from memory and 37 s from a disk, where the graph
 * loads in 3 s and 6 s (measured, with SHA-256 and two cores), and this takes 4 ms and 50 ms.
 */
export async function sampleOf(file: string): Promise<string> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    const hash = createHash('sha256').update(String(size));
    const piece = Buffer.alloc(pieceBytes);
    const step = Math.max(pieceBytes, Math.floor((size - pieceBytes) / (pieces - 1)));
    for (let position = 0; position < size; position += step) {
      const { bytesRead } = await handle.read(piece, 0, pieceBytes, position);
      hash.update(piece.subarray(0, bytesRead));
    }
    return hash.digest('hex').slice(0, 32);
  } finally {
    await handle.close();
  }
}
