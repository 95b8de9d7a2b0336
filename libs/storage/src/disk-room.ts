import { statfs } from 'node:fs/promises';

/** Kept free for the database and for pictures; on a disk of less than four times this, a quarter. */
const reserveBytes = 2 ** 30;
/** With less than this part of the reserve, the database may fail to write at any moment. */
const fullPart = 1 / 16;

/** A disk's bytes. */
export interface DiskRoom {
  free: number;
  total: number;
  /** What uploads leave free. */
  reserve: number;
  /** Whether there is room for pictures and the database. */
  hasRoom: boolean;
}

/** The disk of a folder; undefined if it cannot be read, or is not there yet. */
export async function diskRoom(folder: string): Promise<DiskRoom | undefined> {
  const disk = await statfs(folder).catch(() => undefined);
  if (!disk) return undefined;
  const [free, total] = [disk.bavail * disk.bsize, disk.blocks * disk.bsize];
  const reserve = Math.min(reserveBytes, total / 4);
  return { free, total, reserve, hasRoom: free >= reserve * fullPart };
}
