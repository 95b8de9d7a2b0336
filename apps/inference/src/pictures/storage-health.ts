import { JsonLogger } from '@app/observability';
import { BackOff, isDiskFull } from '@app/process';
import { IMAGE_STORAGE, type ImageStorage, StorageUnavailableError } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';

/** How long nothing is claimed after a file could not be stored: longer each time. */
const [firstPauseMs, longestPauseMs] = [2_000, 60_000];

/**
 * Whether the storage takes files. While it does not, no task is claimed, because each would be drawn in vain: tasks
 * wait, and none fails for it.
 */
@Injectable()
export class StorageHealth {
  private readonly backOff = new BackOff(firstPauseMs, longestPauseMs);
  private pausedUntil = 0;
  /** Whether it has to be asked before the next claim: at the start, and since a file could not be stored. */
  private isInDoubt = true;

  constructor(
    @Inject(IMAGE_STORAGE) private readonly storage: Pick<ImageStorage, 'check' | 'hasRoom'>,
    @Inject(JsonLogger) private readonly logger: Pick<JsonLogger, 'log' | 'warn' | 'warnSparingly'>,
  ) {}

  /** Whether it takes files, as far as is known: else no task may be claimed. */
  async isWritable(): Promise<boolean> {
    if (performance.now() < this.pausedUntil) return false;
    if (this.isInDoubt) {
      const reason = await reasonOf(this.storage.check());
      if (reason !== undefined) return this.pause(reason);
      this.isInDoubt = false;
      if (this.pausedUntil > 0) this.logger.log('the storage takes files again');
    }
    if (await this.storage.hasRoom()) return true;
    this.logger.warnSparingly('nothing is claimed: the storage takes no files', { reason: 'its disk is full' });
    return false;
  }

  /** Whether the storage is why a task could not be finished. If so, nothing is claimed for a while. */
  async isAtFault(error: unknown): Promise<boolean> {
    const reason = isFull(error) ? 'it is full' : isOfFiles(error) && (await reasonOf(this.storage.check()));
    if (!reason) return false;
    this.pause(reason);
    return true;
  }

  stored(): void {
    this.backOff.reset();
  }

  private pause(reason: string): false {
    this.isInDoubt = true;
    // Whatever else fails meanwhile is the same trouble.
    if (performance.now() < this.pausedUntil) return false;
    const pauseMs = this.backOff.next();
    this.pausedUntil = performance.now() + pauseMs;
    this.logger.warn('nothing is claimed: the storage takes no files', { reason, pauseMs });
    return false;
  }
}

/** Errors of stores that have no room. */
const fullNames = /\b507\b|StorageFull|QuotaExceeded|InsufficientStorage/i;

function isFull(error: unknown): boolean {
  return isDiskFull(error) || (error instanceof StorageUnavailableError && fullNames.test(error.message));
}

/** Whether the error may be one of the storage: a store's, or a disk's, which may be read-only or of another owner. */
function isOfFiles(error: unknown): boolean {
  return error instanceof StorageUnavailableError || (error as NodeJS.ErrnoException).syscall !== undefined;
}

const reasonOf = (check: Promise<void>): Promise<string | undefined> =>
  check.then(
    () => undefined,
    (error: Error) => error.message,
  );
