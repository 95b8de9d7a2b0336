import { type Config, CONFIG } from '@app/config';
import { ServiceUnavailableError } from '@app/domain';
import { dataDisks, type DiskRoom } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';

const retryAfterSeconds = 60;

/**
 * The disks of this process's data folder. Uploads leave a reserve, so that a caller who fills the disk does not affect
 * the others.
 */
@Injectable()
export class DiskSpace {
  constructor(@Inject(CONFIG) private readonly config: Config) {}

  /** @throws ServiceUnavailableError if this many more bytes would use the reserve. */
  async assertRoom(bytes = 0): Promise<void> {
    for (const { free, reserve } of await dataDisks(this.config))
      if (free - bytes < reserve)
        throw new ServiceUnavailableError('There is no room for the file at the moment.', retryAfterSeconds);
  }

  /** Whether there is room for pictures and the database. */
  async hasRoom(): Promise<boolean> {
    return (await dataDisks(this.config)).every(({ hasRoom }) => hasRoom);
  }

  /** The disk with the least free bytes; undefined if none can be read. */
  async fullest(): Promise<DiskRoom | undefined> {
    return (await dataDisks(this.config)).at(0);
  }
}
