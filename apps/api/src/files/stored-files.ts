import { IMAGE_STORAGE } from '@app/storage';
import { JsonLogger } from '@app/observability';
import type { ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';

/** Removes the files of deleted rows. The sweeper removes what a failure leaves behind. */
@Injectable()
export class StoredFiles {
  constructor(
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly logger: JsonLogger,
  ) {}

  /** Call it after the deletion of the rows is committed; it never fails the request. */
  async removeAll(prefixes: readonly string[]): Promise<void> {
    for (const prefix of prefixes)
      await this.storage
        .removeAll(prefix)
        .catch((error: Error) =>
          this.logger.warn('files were left for the sweeper', { prefix, reason: error.message }),
        );
  }
}
