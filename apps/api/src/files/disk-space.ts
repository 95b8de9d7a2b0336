import { join } from 'node:path';
import { type Config, CONFIG } from '@app/config';
import { ServiceUnavailableError } from '@app/domain';
import { diskRoom, type DiskRoom } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';

const retryAfterSeconds = 60;

/**
 * The disks of this process's data folder. Uploads leave a reserve, so that a caller who fills the disk does
 * not affect the others.
 */
@Injectable()
export class DiskSpace {
  private readonly folders: string[];

  constructor(@Inject(CONFIG) { dataDir, storage }: Config) {
    this.folders = storage === 'file' ? [dataDir, join(dataDir, 'images')] : [dataDir];
  }

  /** @throws ServiceUnavailableError if this many more bytes would use the reserve. */
  async assertRoom(bytes = 0): Promise<void> {
    for (const { free, reserve } of await this.disks())
      if (free - bytes < reserve)
        throw new ServiceUnavailableError('There is no room for the file at the moment.', retryAfterSeconds);
  }

  /** Whether pictures and the database still have room. */
  async hasRoom(): Promise<boolean> {
    return (await this.disks()).every(({ hasRoom }) => hasRoom);
  }

  /** The disk with the least free bytes; undefined if none can be read. */
  async fullest(): Promise<{ free: number; total: number } | undefined> {
    return (await this.disks()).sort((a, b) => a.free - b.free).at(0);
  }

  private async disks(): Promise<DiskRoom[]> {
    // A folder that does not exist yet will be on its parent's disk.
    const found = await Promise.all(this.folders.map(diskRoom));
    return found.filter((disk) => disk !== undefined);
  }
}
