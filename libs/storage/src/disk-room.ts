import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@app/config';

/** Kept free for the database and for pictures; on a disk of less than four times this, a quarter. */
const reserveBytes = 2 ** 30;
/** Below this part of the reserve the database may fail to write at any moment. */
const fullPart = 1 / 16;

/** In bytes. */
export interface DiskRoom {
  free: number;
  total: number;
  /** What uploads leave free. */
  reserve: number;
  /** Whether there is room for pictures and the database. */
  hasRoom: boolean;
}

/** The disks of the data folder, that with the least free bytes first. */
export async function dataDisks({ dataDir, storage }: Pick<Config, 'dataDir' | 'storage'>): Promise<DiskRoom[]> {
  const folders = storage === 'file' ? [dataDir, join(dataDir, 'images')] : [dataDir];
  // A folder that does not exist yet will be on its parent's disk.
  const found = await Promise.all(folders.map(diskRoom));
  return found.filter((disk) => disk !== undefined).sort((a, b) => a.free - b.free);
}

/** The disk of a folder; undefined if it cannot be read, or is not there yet. */
export async function diskRoom(folder: string): Promise<DiskRoom | undefined> {
  const disk = await statfs(folder).catch(() => undefined);
  if (!disk) return undefined;
  const [free, total] = [disk.bavail * disk.bsize, disk.blocks * disk.bsize];
  const reserve = Math.min(reserveBytes, total / 4);
  return { free, total, reserve, hasRoom: free >= reserve * fullPart };
}
